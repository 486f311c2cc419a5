"""How far a search is, and what an estimator that searches by itself says to the search inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from slimsvm.progress import Progress
from slimsvm.run import Limits, Record
from slimsvm.search.stand_in import Book


@dataclass
class Inside:
    """What an estimator says that searches by itself, and what it hears."""

    limits: Limits = field(default_factory=Limits)
    show: Callable[[float], None] = lambda share: None
    keep_outputs: bool = False
    only_shared: bool = False  # points that take long are left out
    book: Book | None = None


class Course:
    """How far a search is, in squares of rows for each point, and its limits."""

    def __init__(self, limits: Limits, progress: Progress) -> None:
        self.limits, self.progress = limits, progress
        self.done = self.planned = 0.0

    def plan(self, n_rows: int, n_points: float) -> None:
        """There is more to do."""
        self.planned += float(n_rows) ** 2 * n_points

    def of_pass(self, n_rows: int, n_points: float) -> Callable[[float], None]:
        """What is called with the share of a pass that is done."""
        before, cost = self.done, float(n_rows) ** 2 * n_points

        def show(share: float) -> None:
            self.done = before + share * cost
            share = min(self.done / max(self.planned, 1.0), 1.0)
            self.progress(Record(0, self.limits.seconds, {"share": share}))

        return show
