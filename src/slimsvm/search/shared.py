"""What a search says of the work that its fits shared, and what its parts hand on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shared:
    """What the fits of a search had in common.

    Attributes
    ----------
    n_fits, n_shared
        Fits of the search, and those among them whose outputs came from shared work.
    n_kernels
        Kernel matrices that were made, or kept in part.
    seconds
        Time of the shared work.
    reason
        Why the others, or all, were done one by one.
    what
        What was shared, in words.
    sample
        Rows of the search where it did not see all of them, else 0.
    """

    n_fits: int
    n_shared: int
    n_kernels: int = 0
    seconds: float = 0.0
    reason: str = ""
    what: str = ""
    sample: int = 0

    def __str__(self) -> str:
        seen = f" The search saw {self.sample:,} rows, drawn at random." if self.sample else ""
        if not self.n_shared:
            return f"Nothing was shared: {self.reason}.{seen}"
        text = f"{self.n_shared} of {self.n_fits} fits shared {self.what.format(self.n_kernels)}"
        more = f"; the others were done one by one: {self.reason}" if self.reason else ""
        return f"{text}{more}.{seen}"


class NotShared(Exception):
    """Why the ordinary way is taken."""


@dataclass
class Candidate:
    """One point of the search: the estimator with its parameters."""

    number: int
    parameters: dict[str, Any]
    estimator: Any
