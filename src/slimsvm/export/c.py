"""A description as one header in C99: no allocation, and no library but the exponential of math.h.

Numbers are float, or int8 codes with a scale for each vector, whose exponential comes from two
small tables. What the functions compute stands in :mod:`slimsvm.export.description`.
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm import __version__
from slimsvm.export.c_parts import DECISIONS, EXP_LIBRARY, EXP_TABLE, PROBABILITIES, filled
from slimsvm.export.description import Description, described
from slimsvm.export.numbers import CODE_BYTES, Numbers, check_size, numbers_of
from slimsvm.export.rounding import warn_if_coarse
from slimsvm.persistence.atomic import replacing

Array = NDArray[Any]
DTYPES = ("float", "int8")
PER_LINE = 12
INT32 = 2**31


def to_c(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float",
    name: str = "slimsvm",
    max_bytes: int | None = None,
) -> int:
    """Write a fitted model as one header in C99, for microcontrollers and anything else.

    The header has ``slimsvm_predict(x)``, the label of a row (for labels that are no integers its
    place in ``slimsvm_classes``) or the target, ``slimsvm_scores(x, scores)``, what
    ``decision_function`` returns, and ``slimsvm_probabilities(x, p)`` where the model has them.
    Nothing is allocated; the stack holds a row and its scores.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of slimsvm with any of its kernels, CalibratedClassifierCV around one
        (ensemble=False), or a Pipeline of scalers and one of these.
    path : str or path-like
        The file, usually ``.h``; it is written whole or not at all.
    dtype : {'float', 'int8'}
        Of the model's numbers. 'int8': a byte for each, with a scale for each vector; arithmetic is
        float, and the exponential a table, so that no library is needed for the kernels rbf,
        laplacian, poly and linear.
    name : str
        What all names begin with, so that a program may have several models.
    max_bytes : int, optional
        Refuse to write a model of more bytes, its code (about 2.5 kB) included.

    Returns
    -------
    int
        The bytes of its numbers in a program.

    Warns
    -----
    UserWarning
        If codes of int8 give more than a twentieth of the model's own vectors another answer.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> import slimsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> model = slimsvm.SparseSVC(10, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     slimsvm.to_c(model, os.path.join(folder, "iris.h"), dtype="int8") < 500
    True
    """
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is none of {', '.join(map(repr, DTYPES))}.")
    word = isinstance(name, str) and re.fullmatch("[a-z][a-z0-9_]*", name)
    if not word or keyword.iskeyword(name):
        raise ValueError(f"name={name!r} is no beginning of names in C; use letters, digits and _.")
    d = described(estimator)
    numbers = numbers_of(d, "int8" if dtype == "int8" else "float32")
    check_size(numbers, max_bytes)
    if dtype == "int8":
        warn_if_coarse(d, numbers)
    with replacing(path, text=True) as file:
        file.writelines(source(d, numbers, dtype, name))
    return numbers.nbytes


def source(d: Description, n: Numbers, dtype: str, name: str) -> Iterator[str]:
    """The header, in pieces."""
    upper = name.upper()
    sizes = {
        "N_FEATURES": d.n_features,
        "N_COORDINATES": d.n_mapped,
        "N_VECTORS": d.n_vectors,
        "N_OUTPUTS": d.n_outputs,
        "N_SCORES": n_scores(d),
        "N_CLASSES": d.n_classes,
    }
    what = f"{d.n_vectors} vectors" if d.basis is not None else "weights of features"
    yield (
        f"/* {d.name}, kernel {d.form}, {what}, {n.nbytes} bytes of numbers ({dtype}) and about\n"
        f"   {CODE_BYTES} of code; {d.n_multiplications} multiplications a row. Written by slimsvm "
        f"{__version__}. */\n"
        f"#ifndef {upper}_MODEL_H\n#define {upper}_MODEL_H\n\n#include <stdint.h>\n"
    )
    table = dtype == "int8"
    if not table or d.form == "sigmoid":
        yield "#include <math.h> /* expf or tanhf: link with -lm */\n"
    yield "\n"
    yield "".join(f"#define {upper}_{key} {value}\n" for key, value in sizes.items())
    yield "\n"
    for key, values in n.arrays.items():
        yield from _array(f"{name}_{key}", values)
    yield from _labels(d, name)
    if d.form in ("rbf", "laplacian") or d.probabilities is not None:
        yield filled(EXP_TABLE if table else EXP_LIBRARY, name)
    yield filled(_outputs(d, n), name)
    yield filled(_decisions(d), name)
    yield f"#endif /* {upper}_MODEL_H */\n"


def n_scores(d: Description) -> int:
    """How many numbers ``decision_function`` has for a row."""
    if d.n_classes < 3:
        return 1
    return d.n_outputs if d.by_pair else d.n_classes


def _array(name: str, values: Array) -> Iterator[str]:
    flat = values.ravel()
    kind = {"f": "float", "i": f"int{8 * values.dtype.itemsize}_t"}[values.dtype.kind]
    yield f"static const {kind} {name}[{flat.size}] = {{\n"
    for first in range(0, flat.size, PER_LINE):
        part = flat[first : first + PER_LINE].tolist()
        words = map(_float, part) if kind == "float" else map(str, part)
        yield "  " + ", ".join(words) + (",\n" if first + PER_LINE < flat.size else "\n")
    yield "};\n"


def _float(value: float) -> str:
    """With the nine digits that a float has, and as C wants it."""
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def _labels(d: Description, name: str) -> Iterator[str]:
    if d.classes is None:
        return
    if has_integers(d):
        yield from _array(f"{name}_classes", d.classes.astype(np.int32))
        return
    words = ", ".join(_string(str(c)) for c in d.classes.tolist())
    yield f"static const char *const {name}_classes[{d.n_classes}] = {{{words}}};\n"


def has_integers(d: Description) -> bool:
    """Whether labels are integers that int32 holds."""
    if d.classes is None or d.classes.dtype.kind not in "iubf":
        return False
    return bool(np.abs(d.classes.astype(np.float64)).max() < INT32)


def _string(text: str) -> str:
    """A literal of C in ASCII: other characters as bytes of UTF-8, in octal."""
    plain = (
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()
    )
    return '"' + "".join(plain) + '"'


# -- the outputs -----------------------------------------------------------------------------------


def _outputs(d: Description, n: Numbers) -> str:
    """The function that makes all outputs of a row."""
    small = n.form == "int8"
    lines = ["static inline void @_outputs(const float *x, float *out) {"]
    lines += _mapping(d, n)
    if d.basis is None:
        weight = "(float)*w++" if small else "*w++"
        lines += [
            f"  const {'int8_t' if small else 'float'} *w = @_coef;",
            "  int i, j;",
            "  for (j = 0; j < #_N_OUTPUTS; j++) {",
            "    float sum = 0.0f;",
            f"    for (i = 0; i < #_N_FEATURES; i++) sum += z[i] * {weight};",
            f"    out[j] = @_intercept[j] + sum{' * @_coef_scale[j]' if small else ''};",
            "  }",
            "}\n",
        ]
        return "\n".join(lines)
    if not d.n_vectors:
        last = ["  int j;", "  (void)z;"]
        last += ["  for (j = 0; j < #_N_OUTPUTS; j++) out[j] = @_intercept[j];", "}\n"]
        return "\n".join([*lines, *last])
    kind = "int8_t" if small else "float"
    lines += [
        f"  const {kind} *b = @_basis;",
        f"  const {kind} *w = @_coef;",
        "  int k, c;",
        "  int32_t j;",
    ]
    if d.n_support is None:
        lines += [
            "  for (c = 0; c < #_N_OUTPUTS; c++) out[c] = @_intercept[c];",
            "  for (j = 0; j < #_N_VECTORS; j++) {",
            *_value(d, n),
            f"    for (c = 0; c < #_N_OUTPUTS; c++) out[c] += v * {_cast(small)}*w++;",
            "  }",
            "}\n",
        ]
        return "\n".join(lines)
    lines += [
        "  float part[#_N_CLASSES];",
        "  int own, at, before = 0;",
        "  for (c = 0; c < #_N_OUTPUTS; c++) out[c] = @_intercept[c];",
        "  /* vectors are sorted by class; a class has a coefficient for each other one */",
        "  for (own = 0, j = 0; own < #_N_CLASSES; own++) {",
        "    for (c = 0; c < #_N_CLASSES; c++) part[c] = 0.0f;",
        "    for (; j < @_ends[own]; j++) {",
        *_value(d, n),
        f"    for (c = 0; c < #_N_CLASSES - 1; c++) part[c] += v * {_cast(small)}*w++;",
        "    }",
        "    for (c = own + 1; c < #_N_CLASSES; c++) out[before + c - own - 1] += part[c - 1];",
        "    for (c = 0, at = own - 1; c < own; c++) {",
        "      out[at] += part[c];",
        "      at += #_N_CLASSES - c - 2;",
        "    }",
        "    before += #_N_CLASSES - own - 1;",
        "  }",
        "}\n",
    ]
    return "\n".join(lines)


def _cast(small: bool) -> str:
    return "(float)" if small else ""


def _mapping(d: Description, n: Numbers) -> list[str]:
    """From a row to the coordinates of the vectors."""
    shift = " - @_shift[i]" if "shift" in n.arrays else ""
    centre = "@_centre" if "centre" in n.arrays else ""
    moved = f" - {centre}[i]" if centre else ""
    if d.metric is not None and d.metric.ndim == 2:
        small = n.form == "int8"
        return [
            "  float z[#_N_COORDINATES];",
            f"  const {'int8_t' if small else 'float'} *m = @_metric;",
            "  {",
            "    int i, k;",
            "    for (k = 0; k < #_N_COORDINATES; k++) "
            + (f"z[k] = -{centre}[k];" if centre else "z[k] = 0.0f;"),
            "    for (i = 0; i < #_N_FEATURES; i++) {",
            f"      const float t = {'(' * bool(shift)}x[i]{shift}{')' * bool(shift)}"
            + (" * @_metric_scale[i];" if small else ";"),
            "      for (k = 0; k < #_N_COORDINATES; k++) z[k] += t * " + _cast(small) + "*m++;",
            "    }",
            "  }",
        ]
    factor = " * @_metric[i]" if d.metric is not None else ""
    if not (shift or factor or moved):
        return ["  const float *z = x;"]
    inner = f"(x[i]{shift})" if shift and factor else f"x[i]{shift}"
    return [
        "  float z[#_N_COORDINATES];",
        "  {",
        "    int i;",
        f"    for (i = 0; i < #_N_FEATURES; i++) z[i] = {inner}{factor}{moved};",
        "  }",
    ]


def _value(d: Description, n: Numbers) -> list[str]:
    """The kernel value v of the next vector, times the scale of its coefficients."""
    small = n.form == "int8"
    scaled = " * @_coef_scale[j]" if small else ""
    step = "@_basis_scale[j]" if small else ""
    lines = ["    float s = 0.0f, v;"]
    if d.form in ("rbf", "laplacian"):
        b = f"{step} * (float)*b++" if small else "*b++"
        at = "j" if n.arrays["width"].size > 1 else "0"
        more = "t * t" if d.form == "rbf" else "(t < 0.0f ? -t : t)"
        lines += [
            "    for (k = 0; k < #_N_COORDINATES; k++) {",
            f"      const float t = z[k] - {b};",
            f"      s += {more};",
            "    }",
            f"    v = @_exp(-@_width[{at}] * s){scaled};",
        ]
        return lines
    b = "(float)*b++" if small else "*b++"
    lines += [f"    for (k = 0; k < #_N_COORDINATES; k++) s += z[k] * {b};"]
    inner = f"{_float(d.gamma)} * s{' * ' + step if small else ''} + {_float(d.coef0)}"
    lines += [f"    s = {inner};"]
    if d.form == "sigmoid":
        return [*lines, f"    v = tanhf(s){scaled};"]
    lines += ["    v = 1.0f;"]
    lines += [f"    for (k = 0; k < {d.degree}; k++) v *= s;"] if d.degree else []
    return [*lines, f"    v = v{scaled};"] if small else lines


def _decisions(d: Description) -> str:
    """Scores, the prediction, and probabilities."""
    if d.answer == "number":
        return DECISIONS["number"]
    if d.answer == "sign":
        return DECISIONS["sign"].replace("BORDER", _float(d.border))
    label = "return (int32_t)@_classes[@_place(x)];" if has_integers(d) else "return @_place(x);"
    key = "pairs" if d.pairwise else "joint" if d.joint else "one" if d.n_outputs == 1 else "most"
    text = DECISIONS[key]
    if d.pairwise:
        chosen = "@_by_class(out, votes); " if d.break_ties else "@_votes(out, votes, 0); "
        text = text.replace("CHOSEN", chosen + "return @_largest(votes);")
        text = text.replace("SCORES", DECISIONS["by pair" if d.by_pair else "by class"])
    p = d.probabilities
    if p is not None:
        text += _probable(d)
        if p.decides:
            text = text.replace("@_place(const", "@_undecided(const") + DECISIONS["decides"]
    return text + DECISIONS["label"].replace("LABEL", label)


def _probable(d: Description) -> str:
    p = d.probabilities
    assert p is not None
    key = p.kind
    if p.kind in ("pairs", "softmax", "sigmoids") and d.n_classes == 2 and not d.joint:
        key = {"pairs": "pair", "softmax": "logistic", "sigmoids": "sigmoid"}[p.kind]
    elif p.kind in ("temperature", "sigmoids") and d.n_classes == 2:
        key = "temperature of two" if p.kind == "temperature" else "sigmoid"
    text = PROBABILITIES[key]
    if key == "pairs":
        last = PROBABILITIES["swapped"] if p.swapped else ""
        text = text.replace("SWAPPED", last)
    return text
