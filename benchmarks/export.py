"""Exported models: ONNX beside skl2onnx's operator, and headers in C by accuracy and bytes.

    python -m benchmarks run export --full
    python -m benchmarks tables export

"onnx": an exact SVC in onnxruntime, one thread, 10,000 rows at once and one row; beside it the
operator that skl2onnx makes of scikit-learn's SVC with the same C and gamma, which computes in
float32 whatever it is given. "c": SparseSVC as one header, compiled by gcc -Os; bytes are those of
the object file, code and tables included, and the accuracy is that of the compiled program.
"exponential": graphs of nothing but exp(x), x in [-30, 0], by the operator Exp and by other plain
operators: what a kernel value costs at least.

    python -m benchmarks run export --full --only exponential
"""

from __future__ import annotations

import json
import math
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


def _powers_of_two(g: Any, x: str) -> str:
    """exp(x) = (a polynomial of x / 1024)^1024: the polynomial by Horner, then ten squares."""
    t, value = g("Mul", x, g.numbers(1 / 1024)), g.numbers(1 / 720)
    for power in (5, 4, 3, 2, 1, 0):
        value = g("Add", g("Mul", value, t), g.numbers(1 / math.factorial(power)))
    for _ in range(10):
        value = g("Mul", value, value)
    return str(value)


def _tanh(g: Any, x: str) -> str:
    """exp(x) = (1 + t) / (1 - t), t = tanh(x / 2)."""
    t = g("Tanh", g("Mul", x, g.numbers(0.5)))
    return str(g("Div", g("Add", t, g.numbers(1.0)), g("Sub", g.numbers(1.0), t)))


def _sigmoid(g: Any, x: str) -> str:
    """exp(x) = s / (1 - s), s = 1 / (1 + exp(-x))."""
    s = g("Sigmoid", x)
    return str(g("Div", s, g("Sub", g.numbers(1.0), s)))


WAYS = {"Exp": lambda g, x: g("Exp", x), "polynomial": _powers_of_two}
WAYS |= {"Tanh": _tanh, "Sigmoid": _sigmoid}
N_VALUES = 500_000


def exponentials() -> dict[str, Any]:
    """Nanoseconds of CPU time a value on one thread, and the largest error, for each way."""
    import onnx
    import onnxruntime

    from slimsvm.export.operators import IR_VERSION, OPSET, Graph

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    rows = np.random.default_rng(0).uniform(-30.0, 0.0, (500, N_VALUES // 500))
    found: dict[str, Any] = {"runtime": onnxruntime.__version__}
    for dtype in ("float64", "float32"):
        given = rows.astype(dtype)
        for way, write in WAYS.items():
            model = onnx.ModelProto(ir_version=IR_VERSION)
            model.opset_import.add(domain="", version=OPSET)
            model.graph.name = way
            g = Graph(model.graph, dtype)
            g.call(write(g, g.given("X", dtype, ("n", given.shape[1]))), "last")
            g.result("last", dtype, ("n", given.shape[1]))
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            error = np.abs(session.run(None, {"X": given})[0] - np.exp(given)).max()
            seconds = _seconds(session, given, 30)
            found[f"{dtype}/{way}"] = {"ns": 1e9 * seconds / N_VALUES, "error": float(error)}
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
    found.append(Cell("exponential", "exponentials", ()))
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
    lines += _exponential_lines(stored)
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


def _exponential_lines(stored: dict[str, Any]) -> list[str]:
    """What exponentials cost at least, beside a fifth of the operator's time."""
    cell = stored.get("exponential")
    if cell is None:
        return []
    ways = [
        (f"{way} in {dtype}", cell[f"{dtype}/{way}"])
        for dtype in ("float64", "float32")
        for way in WAYS
    ]
    lines = ["", "| exp(x) by | ns a value | largest error |", "|---|---|---|"]
    lines += [f"| {name} | {own['ns']:.2f} | {own['error']:.0e} |" for name, own in ways]
    least = cell["float64/Exp"]["ns"]
    lines += ["", "| set | values | their Exp in float64 | a fifth of the operator |"]
    lines.append("|---|---|---|---|")
    for name in ONNX:
        other = stored.get(f"{name}/onnx", {})
        if "operator_batch" in other:
            n = other["vectors"] * BATCH
            fifth = other["operator_batch"] / 5
            lines.append(f"| {name} | {n:,} | {1e-6 * n * least:.3g} ms | {1e3 * fifth:.3g} ms |")
    return lines


TABLES = {"export": table}
