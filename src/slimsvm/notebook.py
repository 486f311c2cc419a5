"""What a fitted estimator shows of itself in a notebook: how it ended, and how large it is."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.ending import percent

# what a model may hold: how many there are, and what they are called
COUNTED = (("basis_", "basis vectors"), ("support_vectors_", "support vectors"))
PREDICTS = (
    "basis_",
    "basis_coef_",
    "metric_",
    "widths_",
    "support_vectors_",
    "dual_coef_",
    "coef_",
    "intercept_",
)


def model_nbytes(estimator: Any) -> int:
    """Bytes of the numbers that prediction needs, in memory.

    Examples
    --------
    Two vectors, two coefficients and one intercept:

    >>> from slimsvm import SVC
    >>> model_nbytes(SVC(kernel="linear").fit([[0.0], [1.0]], [3, 5]))
    40
    """
    total = 0
    for name in PREDICTS:
        value = estimator.__dict__.get(name)  # not those that are computed when asked for
        if sp.issparse(value):
            total += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
        elif value is not None:
            total += np.asarray(value).nbytes
    return total


def facts(estimator: Any) -> list[tuple[str, str]]:
    """The lines to show of a fitted estimator: a name and a text.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> dict(facts(SVC(kernel="linear").fit([[0.0], [1.0]], [3, 5])))["Size"]
    '2 support vectors, 40 bytes'
    """
    lines = [("Status", str(estimator.status_))]
    certificate = estimator.certificate_
    if np.isfinite(certificate.relative_gap):
        near = f"within {percent(certificate.relative_gap)} of the optimum"
        about = f"objective {certificate.objective:.6g}, {near}, scope {certificate.scope!r}"
        lines.append(("Certificate", about))
    held: list[tuple[Any, str]] = [
        (getattr(estimator, attribute, None), name) for attribute, name in COUNTED
    ]
    sizes = [f"{vectors.shape[0]:,} {name}" for vectors, name in held if hasattr(vectors, "shape")]
    if n_bytes := model_nbytes(estimator):  # none: a model of several others
        lines.append(("Size", ", ".join([*sizes, size_in_words(n_bytes)])))
    return lines


def size_in_words(n_bytes: int) -> str:
    """A size with a unit.

    Examples
    --------
    >>> size_in_words(900), size_in_words(3_500_000)
    ('900 bytes', '3.3 MB')
    """
    if n_bytes < 1024:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1024:.1f} kB" if n_bytes < 1024**2 else f"{n_bytes / 1024**2:.1f} MB"


class ShowsItsFit:
    """Adds what is known of the fit to scikit-learn's representation of an estimator."""

    def _html_repr(self) -> str:
        """What a notebook shows."""
        html: str = super()._html_repr()  # type: ignore[misc]
        if not hasattr(self, "certificate_"):
            return html
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in facts(self)
        )
        return f'{html}<table class="slimsvm-facts"><tbody>{rows}</tbody></table>'
