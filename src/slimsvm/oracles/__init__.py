"""Structured outputs: what the risk of given scores is, and the plane that supports it there."""

from slimsvm.oracles.binary import LossOracle

__all__ = ["LossOracle"]
