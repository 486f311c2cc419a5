"""Structured outputs: what the risk of given scores is, and the plane that supports it there."""

from slimsvm.oracles.binary import LossOracle
from slimsvm.oracles.chain import Chain
from slimsvm.oracles.multiclass import Binary, Multiclass
from slimsvm.oracles.multivariate import Multivariate
from slimsvm.oracles.structured import Encoded, InvalidAnswer, StructuredOracle

__all__ = [
    "Binary",
    "Chain",
    "Encoded",
    "InvalidAnswer",
    "LossOracle",
    "Multiclass",
    "Multivariate",
    "StructuredOracle",
]
