"""Training on some of the rows: subsets, streams, core sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slimsvm.cross_training import DISCARDS, Discard
from slimsvm.estimators.classification import SVC
from slimsvm.estimators.core_vector import CoreVectorSVC
from slimsvm.estimators.cross_training import CrossTraining
from slimsvm.estimators.online import OnlineSVC
from slimsvm.recipes.table import ROWS, configured, recipe
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.online_rounds import OnlineRounds

_ONE_PASS = {"max_support": None, "finishing": True, "epochs": 1, "solver": OnlineRounds()}


@recipe(
    CrossTraining,
    {"balanced_subsets": True, "held_out": False, "refit_intercept": False},
    "bakir2005crosstraining",
    parameters=(
        """\
n_subsets : int, default=5
    Number of subsets, s.
subset_size : int or float, default=0.2
    Rows in a subset, N2, half from each class: a number, or a share, which stands for 50 rows at
    least. The paper's are from 18 % to half of the rows.
discard : {'both', 'noise', 'redundant'}, default='both'
    Steps 4 and 5, or one of them alone: 'noise' is editing, 'redundant' condensing.
warm_start_dual : bool, default=False
    Discard nothing: begin with multipliers and a kernel cache that the mean margins suggest, the
    talk's guess.
max_time : float, optional
    Seconds for the whole fit, subsets and final models together.
n_jobs : int, optional
    Subsets that are trained at the same time.
random_state : int, RandomState or None, default=None
    Draws the subsets.""",
    ),
    others="Of :class:`slimsvm.SVC`, which is trained on the subsets and on what is kept.",
    example=("C=10.0", "estimator__C", "10.0"),
)
def cross_training(
    n_subsets: int = 5,
    subset_size: float = 0.2,
    *,
    discard: str = "both",
    warm_start_dual: bool = False,
    max_time: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> CrossTraining:
    """Cross-training: an SVM without the rows that SVMs on subsets find noisy or redundant.

    Algorithm 1 of Bakir and Chapelle's talk "Tricks of the trade for training SVMs".

    Notes
    -----
    Left open: what happens to a class with fewer than N2/2 rows (it gives all), and to one that
    would vanish (it keeps rows near the margin). How the mean margins are to make multipliers and a
    cache, the talk does not say either: rows with m_i < 0 begin at their bound, and kernel rows of
    those with m_i < 1 are computed first, the smallest m_i first. :class:`slimsvm.CrossTraining` by
    itself has subsets with the shares of the classes, judges rows by models that have not seen
    them, and makes equal rows one, with the sum of their weights.
    """
    fixed = ROWS["cross_training"].fixed
    given = {name: parameters.pop(name) for name in fixed if name in parameters}
    if discard not in DISCARDS:
        known = ", ".join(map(repr, DISCARDS))
        raise ValueError(f"discard={discard!r} is not one of {known}.")
    return configured(
        "cross_training",
        estimator=SVC(**parameters),
        n_subsets=n_subsets,
        subset_size=subset_size,
        discard=replace(Discard.named(discard), beyond=0.0, merged=False),
        warm_start_dual=warm_start_dual,
        max_time=max_time,
        n_jobs=n_jobs,
        random_state=random_state,
        **given,
    )


@recipe(
    OnlineSVC,
    {"selection": "random", **_ONE_PASS},
    "bordes2005lasvm",
    example=("C=10.0", "epochs", "1"),
)
def lasvm(**parameters: Any) -> OnlineSVC:
    """LASVM: one pass over the rows in random order, then the exact solution over the expansion.

    Section 3 of the paper: PROCESS and REPROCESS for each row, one after the other, and the
    finishing.

    Notes
    -----
    Left open: the number of rows to begin with (here five of each class). The finishing is
    decomposition, which ends where REPROCESS without end would. :class:`slimsvm.OnlineSVC` by
    itself takes rows in batches, and chooses pairs by second-order information.
    """
    return configured("lasvm", **parameters)


@recipe(
    OnlineSVC,
    {"selection": "margin", **_ONE_PASS},
    "bordes2005lasvm",
    "joachims2009cpsp",
    example=("C=10.0", "selection", "'margin'"),
)
def lasvm_active(**parameters: Any) -> OnlineSVC:
    """LASVM with margin-based active selection and finishing, the rival of [2]_.

    Each round takes the one of 50 random rows, of all that were not taken, whose decision value is
    smallest. ``max_iter`` limits the rows that are taken, and so the support vectors.

    Notes
    -----
    As for :func:`lasvm`. Left open: where the rounds end, if not by max_iter. Here, when none of
    the 50 lies within the margin.
    """
    return configured("lasvm_active", **parameters)


@recipe(
    CoreVectorSVC,
    {"ball": "minimum", "solver": CoreRounds()},
    "tsang2005cvm",
    example=("C=10.0", "ball", "'minimum'"),
)
def cvm(**parameters: Any) -> CoreVectorSVC:
    """CVM: the smallest ball around the rows, from a core set of them.

    The algorithm of section 4 of the paper: each round the farthest of 59 random rows joins the
    core set if it is outside of the (1 + eps) ball, and the ball of the core set is found anew.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is twice ours. Left
    open: where none of the 59 is outside, all rows are looked at. :class:`slimsvm.CoreVectorSVC` by
    itself looks at pools of rows, takes several at a time, and solves few rows at once.
    """
    return configured("cvm", **parameters)


@recipe(
    CoreVectorSVC,
    {"ball": "fixed", "solver": CoreRounds()},
    "tsang2007bvm",
    example=("C=10.0", "ball", "'fixed'"),
)
def bvm(**parameters: Any) -> CoreVectorSVC:
    """BVM: a ball of a fixed radius, which far points pull to themselves.

    Algorithm 2 of the paper, with eps = 1/2, 1/4, ... down to the one that is wanted: each round
    the farthest of 59 random rows pulls the centre if it is outside of the (1 + eps) ball.

    Notes
    -----
    C as for :func:`cvm`. Left open: where none of the 59 is outside, all rows are looked at.
    """
    return configured("bvm", **parameters)
