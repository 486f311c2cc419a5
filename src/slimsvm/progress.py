"""The line that shows a long fit at work, and the logger that hears of it.

Messages go to ``logging.getLogger("slimsvm")``: the lines of a long fit at level INFO, how each fit
ended at level DEBUG. ``verbose`` shows the lines as well, whatever the logging is set to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from slimsvm.ending import LOG
from slimsvm.run import Record

# what a record may hold -> its name in the line, and how it is written
WORDS = {
    "share": ("done", ".0%"),
    "violation": ("violation", ".3g"),
    "gap": ("gap", ".3g"),
    "n_support": ("support vectors", ",.0f"),
    "active": ("active", ",.0f"),
}
# the same of a basis that grows or moves
BASIS_WORDS = {
    "objective": ("objective", ".4g"),
    "share": ("done", ".0%"),
    "errors": ("errors", ".2%"),
    "n_basis": ("basis vectors", ",.0f"),
    "violation": ("relative gap", ".3g"),
}
EARLIEST = 2.0  # seconds before which nothing is said of the time left
LATEST = 86_400.0  # seconds beyond which an estimate says nothing


class Progress:
    """A line that shows a long fit at work: gap, support vectors, time, and about what is left.

    ``rich`` draws it where it is installed and the output is a terminal or a notebook; elsewhere it
    is one line at a time.

    Parameters
    ----------
    name : str
        Of what is fitted.
    every : float
        Seconds between two lines.
    shown : bool
        Whether the lines are printed; the logger gets them in any case.
    tol, max_time : float, optional
        Those of the fit: they say when it ends.

    Examples
    --------
    >>> with Progress("SVC", every=0.0, tol=1e-3) as show:
    ...     show(Record(0, 1.5, {"violation": 0.25, "gap": 3.0, "n_support": 12, "active": 1000}))
    ...     show(Record(1, 3.0, {"violation": 0.05, "gap": 1.0, "n_support": 15, "active": 400}))
    SVC  1.5 s  violation 0.25  gap 3  support vectors 12  active 1,000
    SVC  3.0 s  violation 0.05  gap of the active rows 1  support vectors 15  active 400 of 1,000 \
about 4 s left
    """

    def __init__(
        self,
        name: str,
        every: float = 1.0,
        *,
        shown: bool = True,
        tol: float | None = None,
        max_time: float | None = None,
    ) -> None:
        self.name, self.every, self.shown = name, every, shown
        self.tol, self.max_time = tol, max_time
        self._last = -math.inf
        self._live: Any = None
        self._most_active = 0.0
        self._violations: list[tuple[float, float]] = []

    def __enter__(self) -> Progress:
        if self.shown and (sys.stdout.isatty() or "ipykernel" in sys.modules):
            try:
                from rich.live import Live

                self._live = Live(refresh_per_second=4, transient=False)
                self._live.__enter__()
            except ImportError:
                pass
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*failure)

    def __call__(self, record: Record) -> None:
        """Show a record, at most once in ``every`` seconds."""
        violation = record.values.get("violation", math.nan)
        if violation > 0.0:
            self._violations.append((record.seconds, violation))
        self._most_active = max(self._most_active, record.values.get("active", 0.0))
        if record.seconds - self._last < (0.2 if self._live is not None else self.every):
            return
        self._last = record.seconds
        line = "  ".join([self.name, f"{record.seconds:.1f} s", *self._parts(record.values)])
        left = self._left(record)
        if left is not None:
            line += f"  about {in_words(left)} left"
        LOG.info(line)
        if self._live is not None:
            self._live.update(line)
        elif self.shown:
            print(line, flush=True)

    def _parts(self, values: Mapping[str, float]) -> list[str]:
        words = BASIS_WORDS if "n_basis" in values else WORDS
        parts = []
        some = 0.0 < values.get("active", 0.0) < self._most_active
        for key, (name, form) in words.items():
            if key in values:
                name = f"{name} of the active rows" if key == "gap" and some else name
                parts.append(f"{name} {values[key]:{form}}")
        if some:
            parts[-1] += f" of {self._most_active:,.0f}"
        return parts

    def _left(self, record: Record) -> float | None:
        """Seconds until the end, about: from the share that is done, or the way to the tolerance.

        Violations fall about as a power of e: the second half of the time so far says how fast.
        """
        now = record.seconds
        if now < EARLIEST:
            return None
        left, share = math.inf, record.values.get("share", 0.0)
        if share > 0.0:
            left = now * (1.0 - share) / share
        elif self.tol and self._violations:
            then, first = next(pair for pair in self._violations if pair[0] >= 0.5 * now)
            last = self._violations[-1][1]
            if last < first:
                rate = math.log(first / last) / (now - then)
                left = max(0.0, math.log(last / self.tol)) / rate
        if self.max_time is not None:
            left = min(left, self.max_time - now)
        return max(0.0, left) if left < LATEST else None


def in_words(seconds: float) -> str:
    """A time in its natural unit.

    Examples
    --------
    >>> in_words(12.3), in_words(600.0), in_words(9000.0)
    ('12 s', '10 min', '2.5 h')
    """
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
