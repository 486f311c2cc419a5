"""Seeds, one after the other, until the time is over; what was tried and what failed is kept."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "soak"
MOST_FAILURES = 5  # of one run: more of them say the same
EVERY = 10.0  # seconds from one writing of the counts to the next: so much is lost by a kill


class Campaign:
    """The trials of one promise.

    Parameters
    ----------
    name : str
        Of the campaign; a row of the table.
    seconds : float
        For how long to go on.
    kept : bool
        Whether to go on from the last run and to count this one.
    only : int, optional
        The one seed to try: a failure again.
    size : int, optional
        After how many trials, of all runs, it is complete; none: never.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        kept: bool,
        only: int | None = None,
        size: int | None = None,
    ) -> None:
        self.name, self.seconds, self.kept, self.only = name, seconds, kept, only
        self.size = sys.maxsize if size is None else size
        self.failures: list[str] = []

    def run(
        self,
        trial: Callable[[int], int | None],
        promise: str,
        measured: Callable[[], str] = str,
    ) -> None:
        """Try seeds; a trial returns how many things it tried (None: one), or raises.

        ``measured`` says, after the last of them, what was measured; it may fail as a trial may.
        """
        before = read_results().get(self.name, {}) if self.kept else {}
        seed = first = int(before.get("next_seed", 0)) if self.only is None else self.only
        begin = written = time.monotonic()
        n_tried, n_before = 0, int(before.get("tried", 0))
        print(f"{self.name}: seeds from {first}")
        while n_before < self.size:
            try:
                n_tried += trial(seed) or 1
            except Exception:
                self._failed(seed, traceback.format_exc())
            seed, now = seed + 1, time.monotonic()
            if self.kept and now - written > EVERY:
                self._count(before, promise, seed, n_tried, now - begin, "")
                written = now
            over = now - begin > self.seconds or n_before + n_tried >= self.size
            if over or self.only is not None or len(self.failures) >= MOST_FAILURES:
                break
        try:
            said = measured() if n_tried else ""
        except AssertionError as error:
            said = str(error)
            self._failed(seed - 1, traceback.format_exc())
        if self.kept:
            self._count(before, promise, seed, n_tried, time.monotonic() - begin, said)
        assert not self.failures, "\n".join(self.failures)

    def _failed(self, seed: int, said: str) -> None:
        again = f"pytest tests/soak -k {self.name} --soak-seed {seed}"
        self.failures.append(f"{again}\n{said}")
        folder = KEPT / "failures"
        folder.mkdir(parents=True, exist_ok=True)
        facts = {"campaign": self.name, "seed": seed, "again": again, "said": said}
        (folder / f"{self.name}-{seed}.json").write_text(json.dumps(facts, indent=1) + "\n")

    def _count(
        self,
        before: dict[str, Any],
        promise: str,
        seed: int,
        n_tried: int,
        seconds: float,
        said: str,
    ) -> None:
        results = read_results()
        said = said or before.get("measured", "")
        results[self.name] = {
            "promise": promise,
            "tried": int(before.get("tried", 0)) + n_tried,
            "failed": int(before.get("failed", 0)) + len(self.failures),
            "seconds": round(float(before.get("seconds", 0.0)) + seconds, 1),
            "next_seed": seed,
            "last_run": time.strftime("%Y-%m-%d", time.gmtime()),
            **({"measured": said} if said else {}),
        }
        write_results(results)


def read_results() -> dict[str, Any]:
    """What all campaigns have tried so far."""
    path = KEPT / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write_results(results: dict[str, Any]) -> None:
    """Replace the file whole, so that a run that is killed leaves the one before."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / "results.json"
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    os.replace(part, path)
