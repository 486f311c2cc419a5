"""Exported models: ONNX beside skl2onnx's operator, and headers in C by accuracy and bytes.

    python -m benchmarks run export --full
    python -m benchmarks tables export

"onnx": an exact SVC in onnxruntime, one thread, 10,000 rows at once and one row; beside it the
operator that skl2onnx makes of scikit-learn's SVC with the same C and gamma, which computes in
float32 whatever it is given. "c": SparseSVC as one header, compiled by gcc -Os; bytes are those of
the object file, code and tables included, and the accuracy is that of the compiled program.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "export.json"
BATCH, REPEATS = 10_000, 3
# set: rows of the training, C
ONNX = {"satimage": (4435, 10.0), "letter": (15_000, 10.0), "mnist": (5000, 10.0)}
# set: vectors, C
SMALL = {"letter": (500, 10.0), "mnist": (250, 10.0)}
MAIN = """#include <stdio.h>
#include "model.h"
int main(void) {
  static float x[SLIMSVM_N_FEATURES];
  while (fread(x, sizeof(float), SLIMSVM_N_FEATURES, stdin) == SLIMSVM_N_FEATURES)
    printf("%ld\\n", (long)slimsvm_predict(x));
  return 0;
}
"""
ALONE = '#include "model.h"\nint label(const float *x);\n'
ALONE += "int label(const float *x) { return (int)slimsvm_predict(x); }\n"


def _rows(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    scale = 255.0 if name == "mnist" and X.max() > 1 else 1.0
    return X / scale, y.astype(int), X_test / scale, y_test.astype(int)


def _seconds(session: Any, X: Any, n: int) -> float:
    found = []
    for _ in range(n):
        begin = time.process_time()
        session.run(None, {"X": X})
        found.append(time.process_time() - begin)
    return min(found)


def onnx(name: str) -> dict[str, Any]:
    """CPU seconds of both, the same rows."""
    import onnxruntime
    import skl2onnx
    from sklearn.svm import SVC as Theirs

    import slimsvm

    n, C = ONNX[name]
    X, y, X_test, _ = _rows(name)
    rows = np.tile(X_test, (BATCH // len(X_test) + 1, 1))[:BATCH]
    theirs, ours = Theirs(C=C).fit(X[:n], y[:n]), slimsvm.SVC(C=C).fit(X[:n], y[:n])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = np.zeros((1, X.shape[1]), np.float32)
        operator = skl2onnx.to_onnx(theirs, first, options={"zipmap": False})
    made = {"operator": operator, "float32": slimsvm.to_onnx(ours, dtype="float32")}
    made["float64"] = slimsvm.to_onnx(ours, dtype="float64")
    found: dict[str, Any] = {"vectors": len(ours.support_), "classes": len(ours.classes_)}
    for key, model in made.items():
        given = rows.astype(np.float64 if key == "float64" else np.float32)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        found[f"{key}_batch"] = _seconds(session, given, REPEATS)
        found[f"{key}_row"] = _seconds(session, given[:1], 300)
        label = session.run(None, {"X": given})[0]
        found[f"{key}_different"] = int(np.sum(label != ours.predict(rows)))
    return found


def header(name: str, dtype: str) -> dict[str, Any]:
    """Accuracy and bytes of a compiled header, microseconds a row."""
    import slimsvm

    k, C = SMALL[name]
    X, y, X_test, y_test = _rows(name)
    model = slimsvm.SparseSVC(k, C=C, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        numbers = slimsvm.to_c(model, here / "model.h", dtype=dtype)
        (here / "main.c").write_text(MAIN)
        (here / "alone.c").write_text(ALONE)
        run = {"cwd": here, "check": True}
        subprocess.run(["gcc", "-std=c99", "-O3", "-o", "main", "main.c", "-lm"], **run)
        subprocess.run(["gcc", "-std=c99", "-Os", "-c", "alone.c"], **run)
        size = subprocess.run(["size", "alone.o"], capture_output=True, text=True, **run).stdout
        given = X_test.astype(np.float32).tobytes()
        begin = time.perf_counter()
        answer = subprocess.run([here / "main"], input=given, capture_output=True, **run).stdout
        seconds = time.perf_counter() - begin
    label = np.array(answer.split(), int)
    return {
        "accuracy": float(np.mean(label == y_test)),
        "in_python": float(model.score(X_test, y_test)),
        "bytes": sum(map(int, size.splitlines()[1].split()[:3])),
        "numbers": numbers,
        "microseconds": 1e6 * seconds / len(label),
        "vectors": int(model.n_basis_),
    }


def cells(quick: bool) -> list[Cell]:
    """All of them; quick: the smallest."""
    names = ("satimage",) if quick else tuple(ONNX)
    found = [Cell(f"{name}/onnx", "onnx", (name,)) for name in names]
    small = ("letter",) if quick else tuple(SMALL)
    forms = ("float", "int8")
    return found + [Cell(f"{n}/{form}", "header", (n, form)) for n in small for form in forms]


def table() -> str:
    """One line for each set, ONNX first."""
    if not RESULTS.exists():
        return "Not measured yet: `python -m benchmarks run export --full`."
    stored = json.loads(RESULTS.read_text())["cells"]
    lines = [
        "| set | vectors | rows | operator | float32 | float64 | different labels |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ONNX:
        cell = stored.get(f"{name}/onnx", {})
        for rows, unit, scale in (("batch", "ms", 1e3), ("row", "µs", 1e6)):
            if "operator_batch" in cell:
                own = [cell[f"{key}_{rows}"] * scale for key in ("operator", "float32", "float64")]
                shown = " | ".join(f"{value:.3g} {unit}" for value in own)
                first = "10,000" if rows == "batch" else "1"
                wrong = cell["float32_different"], cell["float64_different"]
                last = f"{wrong[0]}, {wrong[1]}"
                lines.append(f"| {name} | {cell['vectors']:,} | {first} | {shown} | {last} |")
    lines += [
        "",
        "| set | numbers | vectors | bytes, code included | accuracy | in Python | µs a row |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for name in SMALL:
        for form in ("float", "int8"):
            cell = stored.get(f"{name}/{form}", {})
            if "accuracy" in cell:
                shown = f"{100 * cell['accuracy']:.2f} | {100 * cell['in_python']:.2f}"
                sizes = f"{cell['vectors']} | {cell['bytes']:,}"
                lines.append(
                    f"| {name} | {form} | {sizes} | {shown} | {cell['microseconds']:.3g} |"
                )
    return "\n".join(lines)


TABLES = {"export": table}
