"""The line that shows a long fit at work."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from slimsvm.run import Record


class Progress:
    """A line that shows a long fit at work: gap, support vectors, time.

    ``rich`` draws it where it is installed and the output is a terminal.

    Examples
    --------
    >>> from slimsvm.progress import Progress
    >>> from slimsvm.run import Record
    >>> with Progress("SVC", every=0.0) as show:
    ...     show(Record(0, 1.5, {"violation": 0.25, "gap": 3.0, "n_support": 12, "active": 100}))
    SVC  1.5 s  violation 0.25  gap 3  support vectors 12  active 100
    """

    def __init__(self, name: str, every: float = 1.0) -> None:
        self.name, self.every, self._last = name, every, -np.inf
        self._live: Any = None

    def __enter__(self) -> Progress:
        if sys.stdout.isatty():
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
        if record.seconds - self._last < (0.2 if self._live is not None else self.every):
            return
        self._last = record.seconds
        words = {
            "violation": "violation",
            "gap": "gap",
            "n_support": "support vectors",
            "active": "active",
        }
        if "n_basis" in record.values:  # a basis that grows
            words = {
                "objective": "objective",
                "n_basis": "basis vectors",
                "violation": "relative gap",
            }
        parts = [f"{words[key]} {record.values[key]:.4g}" for key in words if key in record.values]
        line = "  ".join([self.name, f"{record.seconds:.1f} s", *parts])
        if self._live is not None:
            self._live.update(line)
        else:
            print(line, flush=True)
