"""The table of recipes: what each fixes, its papers, and the sections that all docstrings have."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

from slimsvm.solvers.cutting_plane import CuttingPlane

Function = TypeVar("Function", bound=Callable[..., Any])

PAPERS = {
    "bakir2005crosstraining": (
        'G. Bakir, L. Bottou, J. Weston, "Breaking SVM complexity with cross-training", NIPS 17, '
        "2005."
    ),
    "boser1992": (
        'B. E. Boser, I. M. Guyon, V. N. Vapnik, "A training algorithm for optimal margin '
        'classifiers", COLT 1992.'
    ),
    "bordes2005lasvm": (
        'A. Bordes, S. Ertekin, J. Weston, L. Bottou, "Fast kernel classifiers with online and '
        'active learning", JMLR 6, 2005.'
    ),
    "chapelle2007primal": (
        'O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19, '
        "2007."
    ),
    "fine2001": (
        'S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", '
        "JMLR 2, 2001."
    ),
    "joachims2006linear": 'T. Joachims, "Training linear SVMs in linear time", KDD 2006.',
    "joachims2009cpsp": (
        'T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning '
        "76, 2009."
    ),
    "joachims2009structural": (
        'T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", '
        "Machine Learning 77, 2009."
    ),
    "joachims1999svmlight": (
        'T. Joachims, "Making large-scale SVM learning practical", Advances in Kernel Methods, '
        "1999."
    ),
    "keerthi2006reduced": (
        'S. Keerthi, O. Chapelle, D. DeCoste, "Building support vector machines with reduced '
        'classifier complexity", JMLR 7, 2006.'
    ),
    "lee2001rsvm": (
        'Y.-J. Lee, O. L. Mangasarian, "RSVM: Reduced support vector machines", SDM 2001.'
    ),
    "lin2000icf": (
        'C.-J. Lin, R. Saigal, "An incomplete Cholesky factorization for dense symmetric positive '
        'definite matrices", BIT 40, 2000.'
    ),
    "lin2003rsvm": (
        'K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on '
        "Neural Networks 14, 2003."
    ),
    "mangasarian2001lsvm": (
        'O. L. Mangasarian, D. R. Musicant, "Lagrangian support vector machines", JMLR 1, 2001.'
    ),
    "osuna1997": (
        'E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector '
        'machines", 1997.'
    ),
    "platt1998smo": (
        'J. C. Platt, "Fast training of support vector machines using sequential minimal '
        'optimization", Advances in Kernel Methods, 1998.'
    ),
    "suykens1999lssvm": (
        'J. A. K. Suykens, J. Vandewalle, "Least squares support vector machine classifiers", 1999.'
    ),
    "tsang2005cvm": (
        'I. W. Tsang, J. T. Kwok, P.-M. Cheung, "Core vector machines: fast SVM training on very '
        'large data sets", JMLR 6, 2005.'
    ),
    "tsang2007bvm": (
        'I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls", '
        "ICML 2007."
    ),
    "williams2001nystrom": (
        'C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 13, '
        "2001."
    ),
    "wu2006direct": (
        'M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning '
        'algorithms", JMLR 7, 2006.'
    ),
    "yu2008sampled": (
        'C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts", KDD '
        "2008."
    ),
}

# cutting planes as published: the newest cut decides the end, and there is no line search
PLANES = CuttingPlane(line_search=False, stop="violation")
UNLIMITED = {"max_iter": -1}

_DOCSTRING = """\
{text}

Parameters
----------
{parameters}

Returns
-------
{kind}
    Not fitted.
{notes}
References
----------
{references}

Examples
--------
>>> from slimsvm.recipes import {name}
>>> {name}({arguments}).get_params()["{shown}"]
{value}
"""


class _Row(NamedTuple):
    kind: type
    fixed: dict[str, Any]
    defaults: dict[str, Any]


ROWS: dict[str, _Row] = {}

RECIPES: dict[str, tuple[Callable[..., Any], str]] = {}
"""The recipes by name, each with the key of its paper in docs/refs.bib."""


def recipe(
    kind: type,
    fixed: dict[str, Any],
    *papers: str,
    defaults: dict[str, Any] | None = None,
    parameters: tuple[str, ...] = (),
    others: str = "",
    example: tuple[str, str, str],
) -> Callable[[Function], Function]:
    """Put a function into the table, and complete its docstring.

    Parameters
    ----------
    kind, fixed
        The estimator, and its parameters that make the method.
    *papers : str
        Keys of the papers, that of the method first.
    defaults : dict, optional
        Parameters that are not those of the estimator unless they are given.
    parameters : tuple of str
        Sections of the docstring for the parameters that the function names.
    others : str
        What the other parameters are; by default those of the estimator that are not fixed.
    example : tuple of str
        Arguments of a call, a parameter of its result, and the value of that parameter.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        ROWS[name] = _Row(kind, fixed, defaults or {})
        RECIPES[name] = function, papers[0]
        text, heading, notes = inspect.cleandoc(function.__doc__ or "").partition("\nNotes\n-----")
        *first, last = fixed
        names = f"{', '.join(first)} and {last}" if first else last
        passed = others or f"Of :class:`slimsvm.{kind.__name__}`, except for {names}."
        for key, value in (defaults or {}).items():
            passed = f"{passed} By default, {key}={value!r}."
        passed = textwrap.fill(passed, 96, initial_indent="    ", subsequent_indent="    ")
        references = [
            textwrap.fill(
                f".. [{at}] {PAPERS[key]} ({key})",
                96,
                subsequent_indent="   ",
                break_on_hyphens=False,
            )
            for at, key in enumerate(papers, 1)
        ]
        arguments, shown, value = example
        function.__doc__ = _DOCSTRING.format(
            name=name,
            text=text.rstrip(),
            parameters="\n".join([*parameters, "**parameters", passed]),
            kind=kind.__name__,
            notes=f"{heading}{notes}\n" if notes else "",
            references="\n".join(references),
            arguments=arguments,
            shown=shown,
            value=value,
        )
        return function

    return register


def configured(recipe: str, made: dict[str, Any] | None = None, /, **given: Any) -> Any:
    """The estimator of a recipe; what the recipe fixes cannot be given.

    ``made``: of what is fixed, that which depends on the recipe's own parameters.
    """
    kind, fixed, defaults = ROWS[recipe]
    fixed = {**deepcopy(fixed), **(made or {})}
    for name, value in fixed.items():
        if name in given:
            raise ValueError(
                f"{recipe} has {name}={value!r}: that is what makes it this method. "
                f"Leave {name} out, or use {kind.__name__} for another."
            )
    return kind(**fixed, **{**defaults, **given})
