"""Models of fits that have not ended: what a checkpoint keeps, and what there is without time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from slimsvm.ending import REASONS, Ending, Status
from slimsvm.models.fitted import FittedModel
from slimsvm.run import Limits
from slimsvm.training import Data, Fit, some_rows

SOME = 1000  # rows of the model where there was no time for all: at most a second of work
CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


class Unfinished(FittedModel):
    """What an estimator can do about a fit that is going on, or was ended before its first step."""

    _all_rows: ClassVar[bool]
    # the steps of a fit, which the estimator has
    _checked: Callable[..., Any]
    _encoded: Callable[..., Any]
    _prepared: Callable[..., Any]
    _solved: Callable[..., Any]
    _concluded: Callable[..., Any]

    def _checkpoints(self) -> list[Any]:
        """Callbacks that keep what a fit has done so far: one at most."""
        given = getattr(self, "_skl_callbacks", None) or ()
        found = [of for of in given if hasattr(of, "keeping")]
        if len(found) > 1:
            paths = ", ".join(str(of.path) for of in found)
            raise ValueError(f"A fit has one Checkpoint at most; got {len(found)} ({paths}).")
        return found

    @contextmanager
    def _kept(
        self, data: Data, fit: Fit, so_far: Callable[[], Any] | None = None
    ) -> Iterator[None]:
        """With a :class:`slimsvm.Checkpoint` the fit goes on from it, and is kept in it."""
        now = so_far or (lambda: self._so_far(data, fit, "_solved"))
        with ExitStack() as stack:
            for checkpoint in self._checkpoints():
                seed = stack.enter_context(checkpoint.keeping(self, data, now))
                if getattr(self, "random_state", 0) is None:  # the same draws when it goes on
                    self.random_state = seed
                    stack.callback(setattr, self, "random_state", None)
            yield

    def _so_far(self, data: Data, fit: Fit, solve: str) -> Self:
        """The model of now, while the fit goes on: runs say what they have."""
        model = copy(self)
        for name in (*CALLBACKS, "_skl_callbacks", "_parent_callback_ctx"):
            model.__dict__.pop(name, None)
        ended = replace(fit, limits=Limits(stopped=True), watchers=(lambda record: None,))
        own = replace(data, about=dict(data.about))
        ending = model._concluded(own, getattr(model, solve)(own, ended), ended)
        words = (
            f"Kept by a checkpoint after {fit.limits.seconds:.1f} s, while the fit went on: how "
            "far from the optimum is not known."
        )
        # what is known of a part of the fit, such as one size of a path, is not that of the whole
        model.certificate_ = replace(ending.certificate, violation=np.inf, gap=np.inf)
        model.status_ = Status("stopped", words)
        model.history_, model.fit_status_ = ending.history, 1
        return model

    def _concluded_on_few_rows(self, data: Data, fit: Fit) -> Ending:
        """The model of some rows, where the limits left no time for one step over all of them."""
        n, few = data.used.size, self._few(self._here(data))
        self._prepared(few)
        unlimited = replace(fit, limits=Limits(), watchers=())
        ending = self._concluded(few, self._solved(few, unlimited), unlimited)
        reason = fit.limits.reason() or "max_time"
        certificate = replace(ending.certificate, objective=np.nan, violation=np.inf, gap=np.inf)
        words = (
            f"{REASONS[reason].format(seconds=fit.limits.seconds)}, before the first step over all "
            f"{n:,} rows was done: the model is that of {few.used.size:,} of them, and how far it "
            "is from the optimum is not known."
        )
        return Ending(certificate, Status(reason, words), ending.history)

    def _here(self, data: Data) -> Data:
        """The same, or of rows that are elsewhere some."""
        if "rows" not in data.about:
            return data
        from slimsvm.far.fits import some_of

        return self._encoded(*self._checked(*some_of(data.about["rows"])))

    def _few(self, data: Data) -> Data:
        """The problem of some rows."""
        return some_rows(data, SOME, self._all_rows)
