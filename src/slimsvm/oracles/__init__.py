"""Structured outputs: what the risk of given scores is, and the plane that supports it there."""

from slimsvm.oracles.binary import LossOracle
from slimsvm.oracles.multiclass import Binary, Multiclass
from slimsvm.oracles.structured import Encoded, StructuredOracle

__all__ = ["Binary", "Encoded", "LossOracle", "Multiclass", "StructuredOracle"]
