"""Files of one label in LIBSVM's programs: models of no vectors, which always say that label."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.files import write_bytes
from slimsvm.kernels import make_kernel
from slimsvm.persistence.libsvm import KERNEL_WORDS, NUMBERS, SVM_TYPES
from slimsvm.persistence.text import written

Array = NDArray[Any]


def write_constant(estimator: Any, label: int, n_features: int, path: str) -> None:
    """Write what svm-train writes, and warn as it does."""
    text = "training data in only one class. See README for details."
    print(f"WARNING: {text}", file=sys.stderr)
    own = {key: getattr(estimator, key) for key in ("gamma", "degree", "coef0")}
    own["gamma"] = 1.0 / max(1, n_features) if own["gamma"] == "auto" else own["gamma"]
    kernel = make_kernel(estimator.kernel, **own)
    head = {
        "svm_type": SVM_TYPES[type(estimator).__name__],
        "kernel_type": KERNEL_WORDS[kernel.name],
        **{name: written(getattr(kernel, name)) for name in NUMBERS.get(kernel.name, ())},
        "nr_class": "1",
        "total_sv": "0",
        "rho": "",
        "label": str(label),
        **({"probA": "", "probB": ""} if estimator.probability is True else {}),
        "nr_sv": "0",
        "SV": "",
    }
    write_bytes(path, (f"{key} {value}".rstrip().encode() + b"\n" for key, value in head.items()))


def constant_of(head: dict[str, list[str]]) -> float | None:
    """The label of a model file of one label, by the lines above its vectors; None for others."""
    if head.get("svm_type") not in (["c_svc"], ["nu_svc"]) or head.get("total_sv") != ["0"]:
        return None
    label = head.get("label", [])
    whole = len(label) == 1 and re.fullmatch(r"[+-]?\d{1,10}", label[0])
    return float(label[0]) if head.get("nr_class") == ["1"] and whole else None


def answer_constant(label: float, n_rows: int, out: str, probable: bool) -> Array:
    """Write what svm-predict writes of such a model; returns the predictions."""
    lines = [f"labels {label:g}\n"] if probable else []
    lines += [f"{label:g} 1\n" if probable else f"{label:.17g}\n"] * n_rows
    write_bytes(out, (line.encode() for line in lines))
    return np.full(n_rows, label)
