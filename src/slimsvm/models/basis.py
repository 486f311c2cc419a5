"""Basis vectors, and what a fitted estimator holds beside them."""

from __future__ import annotations

from typing import Any, ClassVar

import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimsvm.declarations import Attribute, attribute, demand
from slimsvm.expansion import Expansion
from slimsvm.kernels import Precomputed
from slimsvm.models.support import KernelModel

Array = NDArray[Any]


class BasisVectors(KernelModel):
    """Vectors that need not be rows, with one column of coefficients for each output.

    Attributes
    ----------
    basis_
        The basis vectors.
    basis_indices_
        Which training rows they are, if they are rows.
    basis_coef_
        Their coefficients.
    n_basis_
        Number of basis vectors.
    certificate_
        Objective, and its gap within the span of the basis.
    model_nbytes_
        Bytes of the numbers that prediction needs.
    """

    _learned = "basis_coef_"
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("basis_", "rows", ("n_basis", "n_features")),
        attribute("basis_indices_", "indices", ("n_basis",)),
        attribute("basis_coef_", "float", ("n_basis", "n_outputs")),
        attribute("intercept_", "float", ("n_outputs",)),
        attribute("n_basis_", "count"),
        attribute("kernel_", "kernel"),
        attribute("certificate_", "certificate"),
        attribute("model_nbytes_", "count", stored=False),
    )

    basis_: Any
    basis_coef_: Array
    basis_indices_: Array | None
    n_basis_: int
    certificate_: Any

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Any:
        if self._precomputed:  # type: ignore[attr-defined]
            raise ValueError(
                f"{type(self).__name__} needs the rows themselves, not kernel='precomputed': basis "
                "vectors are made from rows. Use SVC or SVR for a precomputed kernel, or give the "
                "kernel as a function."
            )
        return super()._checked(X, y, sample_weight, reset)  # type: ignore[misc]

    def _made_from(self) -> tuple[Any, ...]:
        return self.basis_coef_, self.intercept_, self.basis_

    def _make(self) -> Expansion:
        exact = self.certificate_.precision == "float64"
        return Expansion(self.kernel_, self.basis_, self.basis_coef_, self.intercept_, exact=exact)

    def _hold(self, kernel: Any, basis: Any, indices: Any, coef: Any, intercept: Any) -> None:
        """Set the attributes."""
        self.kernel_, self.basis_, self.basis_indices_ = kernel, basis, indices
        self.basis_coef_, self.intercept_, self.n_basis_ = coef, intercept, int(basis.shape[0])

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        return {**super()._sizes(a), "n_basis": a["n_basis_"]}

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        super()._check_fitted(a)
        rows = not isinstance(a["kernel_"], Precomputed)
        demand(rows, f"kernel_: a {cls.__name__} has no precomputed kernel")

    @property
    def model_nbytes_(self) -> int:
        """Bytes of the numbers that prediction needs."""
        check_is_fitted(self)
        B = self.basis_
        size = B.data.nbytes + B.indices.nbytes + B.indptr.nbytes if sp.issparse(B) else B.nbytes
        return int(size + self.basis_coef_.nbytes + self.intercept_.nbytes)
