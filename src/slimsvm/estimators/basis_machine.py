"""What machines share whose function is a kernel expansion over a basis: its attributes, and prediction."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.estimators.base import Machine
from slimsvm.expansion import Expansion
from slimsvm.kernels import Kernel
from slimsvm.run import Certificate
from slimsvm.threads import n_threads

Array = NDArray[Any]


class BasisMachine(Machine):
    """Base of machines with ``basis_``, ``basis_coef_`` and ``intercept_``: one column of coefficients for each output."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Machine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "max_memory": [Interval(Real, 0.0, None, closed="neither"), None],
        "random_state": ["random_state"],
    }

    kernel_: Kernel
    basis_: Any
    basis_coef_: Array
    intercept_: Array
    certificate_: Certificate

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Any, Any, Array]:
        if self._precomputed:
            raise ValueError(
                f"{type(self).__name__} needs the rows themselves, not kernel='precomputed': basis vectors are made from rows. "
                "Use SVC or SVR for a precomputed kernel, or give the kernel as a function."
            )
        return super()._checked(X, y, sample_weight, **options)

    @property
    def model_nbytes_(self) -> int:
        """Bytes of the numbers that prediction needs."""
        check_is_fitted(self)
        basis = self.basis_
        size = (
            basis.data.nbytes + basis.indices.nbytes + basis.indptr.nbytes
            if sp.issparse(basis)
            else basis.nbytes
        )
        return int(size + self.basis_coef_.nbytes + self.intercept_.nbytes)

    def _make(self) -> None:
        """Make the learned function ready for prediction, once: after a fit, and after attributes were restored."""
        exact = self.certificate_.precision == "float64"
        self._made = Expansion(
            self.kernel_, self.basis_, self.basis_coef_, self.intercept_, exact=exact
        )

    def _expansion(self) -> Expansion:
        """The learned function; made anew where an attribute was replaced since."""
        made = self._made
        if (
            made.coef is not self.basis_coef_
            or made.intercept is not self.intercept_
            or made.basis is not self.basis_
        ):
            self._make()
        return self._made

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            reset=False,
        )
        return self._expansion().decision_function(X, n_threads(self.n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(
            super().__getstate__()
        )  # a copy: what comes back is the dictionary of the estimator itself
        state.pop("_made", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "basis_coef_" in self.__dict__:
            self._make()
