"""Whether certificates are true: random problems of all kinds, beside an independent solver.

    python -m benchmarks run certificates --full        20,000 problems (and more claims than that)
    python -m benchmarks tables certificates --show

A cell is a number of problems of one estimator, each with all that its fit claims: the optimum
within the interval of the certificate, the model within its gap, smaller models of its path, the
bound of a subspace, and ``certify``. A claim is false where the interval that is claimed and that
of the independent solver (``tests/reference/optimum.py``) have nothing in common; it is unresolved
where the independent solver is not exact enough to say. Every false one is stored with the command
that shows it again.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "certificates.json"
# problems of an estimator, of a kind of problem, and of a recipe; in all more than 20,000
ESTIMATOR, KIND, RECIPE, QUICK = 800, 400, 150, 5
PROCESSES = 4  # for all recipes: to begin one takes longer than the problems of one
SECONDS = 3600.0


def problems(name: str, first: str, last: str) -> dict[str, Any]:
    """What the fits of the problems first to last - 1 claim."""
    from tests.reference.certificates import claims

    counts: Counter[str] = Counter()
    false, errors, begin = [], [], time.process_time()
    for seed in range(int(first), int(last)):
        again = f"python -m tests.reference.certificates {name} {seed}"
        try:
            found = claims(name, seed)
        except Exception as error:
            errors.append(f"{again}  # {type(error).__name__}: {error}"[:300])
            continue
        for claim in found:
            kind = f"{claim.what.split(' to ')[0]}, {claim.scope}"
            counts[kind] += 1
            counts["unresolved"] += not claim.resolved
            if not claim.true:
                false.append(f"{again}  # {claim}")
    n_claims = sum(n for kind, n in counts.items() if kind != "unresolved")
    for line in (*false, *errors):
        print(line, flush=True)
    return {
        "problems": int(last) - int(first),
        "claims": n_claims,
        "by_scope": dict(counts),
        "false": false,
        "errors": errors,
        "cpu_seconds": time.process_time() - begin,
    }


def of_recipes(part: str, last: str) -> dict[str, Any]:
    """The problems of some of the recipes, each in a cell of its own."""
    from tests.reference.drawn import RECIPES

    names = RECIPES[int(part) :: PROCESSES]
    return {f"recipes-{part}/{name.split('/')[1]}": problems(name, "0", last) for name in names}


def cells(quick: bool) -> list[Cell]:
    """Parts of the problems, so that a run that was killed goes on where it stopped."""
    from tests.reference.drawn import ESTIMATORS, KINDS

    found = []
    for names, each in ((ESTIMATORS, ESTIMATOR), (KINDS, KIND)):
        for name in names:
            words = (name, "0", str(QUICK if quick else each))
            found.append(Cell(name.replace("/", ":"), "problems", words, SECONDS))
    for part in range(1 if quick else PROCESSES):
        words = (str(part), str(QUICK if quick else RECIPE))
        found.append(Cell(f"recipes-{part}", "of_recipes", words, SECONDS, several=True))
    return found


def table() -> str:
    """The stored results in Markdown."""
    import json

    stored = json.loads(RESULTS.read_text(encoding="utf-8"))["cells"] if RESULTS.exists() else {}
    totals: dict[str, Counter[str]] = {}
    scopes: dict[str, Counter[str]] = {}
    for key, cell in stored.items():
        if "failed" in cell:
            continue
        first, *rest = key.split("/")
        key = f"recipes.{rest[0]}" if first.startswith("recipes-") else first
        own = totals.setdefault(key, Counter())
        own.update({name: cell[name] for name in ("problems", "claims")})
        own.update({name: len(cell[name]) for name in ("false", "errors")})
        for kind, n in cell["by_scope"].items():
            name = kind if kind == "unresolved" else kind.split(", ")[-1]
            scopes.setdefault(key, Counter())[name] += n
    lines = [
        "| estimator | problems | claims | full | subspace | sampled | unresolved | false |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, own in sorted(totals.items()):
        by = [f"{scopes[name][kind]:,}" for kind in ("full", "subspace", "sampled", "unresolved")]
        counted = [f"{own['problems']:,}", f"{own['claims']:,}", *by, f"{own['false']:,}"]
        lines.append(f"| {' | '.join([name, *counted])} |")
    return "\n".join(lines)


TABLES = {"certificates": table}
