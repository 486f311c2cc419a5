"""LASVM on rows in memory: a pass over them, and then the problem over the expansion, exactly.

The pass is :mod:`slimsvm.solvers.online`, the finishing :mod:`slimsvm.solvers.decomposition`. Few
rows are finished over all of them, so that they end at the exact solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import SUBSPACE, Status
from slimsvm.gram import make_gram
from slimsvm.problems.dual_qp import DualQP, classification
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.solvers.online import Expanding, Online, Passing

Array = NDArray[Any]
# of the histories: what both solvers say
KEPT = ("seconds", "objective", "gap", "violation", "kernel_values", "active", "n_support")
PASSED = "All {n:,} rows of this call have passed; the expansion has {size:,} vectors"


def pass_over(solver: Online, problem: Passing, start: Expanding | None, **limits: Any) -> Result:
    """All rows once; what ends a pass is that there are no more rows. Limits are those of run."""
    result = run(solver, problem, start=start, **limits)
    status = result.status
    if result.model.done:
        size = result.model.alive.size + result.model.f_a.size
        status = Status("converged", PASSED.format(n=problem.order.size, size=size))
    kept = {name: result.history[name] for name in KEPT}
    return replace(result, status=status, history=kept)


def finished(
    problem: Passing,
    result: Result,
    *,
    wanted: bool,
    everything: bool,
    limits: Limits,
    solve: Callable[[DualQP, Array], Result],
) -> Result:
    """The solution after a pass, as that of the dual problem of all rows.

    Parameters
    ----------
    problem : Passing
        The rows that have passed, named by their places.
    result : Result
        Of the pass; its model is given up, and with it the kernel values of the expansion.
    wanted : bool
        Whether the problem over the expansion is solved; else what the pass has left is taken.
    everything : bool
        Whether the problem is that of all rows instead.
    limits : Limits
        Where the time is over, there is no finishing.
    solve : callable
        Solves a dual problem from a point nearby.
    """
    S: Expanding = result.model
    v, n, sign = S.alive, problem.sign.size, problem.sign
    rows = np.concatenate([S.ids[v], S.f_ids])
    a, upper = np.zeros(n), problem.upper.copy()
    a[rows] = np.concatenate([S.a[v], S.f_a])
    upper[rows] = np.concatenate([S.upper[v], S.f_upper])
    unfinished = replace(result, model=DualSolution(a, np.empty(0), (S.level, S.level)))
    if not wanted or not result.status.converged:
        return unfinished
    if (reason := limits.reason()) is not None:
        said = f"Stopped ({reason}) after {{seconds:.1f}} s, before the finishing"
        return replace(unfinished, status=Status(reason, said))
    support = np.arange(n) if everything else np.sort(rows)
    if np.unique(sign[support]).size < 2:  # nothing was asked about the other class
        return unfinished
    del S, result.model  # its kernel values: the finishing has a cache of its own
    operand = problem.operand if everything else problem.operand.take(support)
    gram = make_gram(operand, problem.budget, problem.n_threads)
    last = solve(classification(gram, sign[support], upper[support]), a[support])
    a[:] = 0.0
    a[support] = last.model.a
    histories = (result.history, last.history)
    return replace(
        last,
        model=replace(last.model, a=a, s=np.empty(0)),
        certificate=last.certificate if everything else replace(last.certificate, scope=SUBSPACE),
        history={name: np.concatenate([h[name] for h in histories]) for name in KEPT},
        n_iter=result.n_iter + last.n_iter,
    )
