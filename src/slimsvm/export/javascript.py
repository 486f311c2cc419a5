"""A description as one ES module: no dependencies, for browsers and Node."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from slimsvm import __version__
from slimsvm.export.description import Description, described
from slimsvm.export.numbers import Numbers, check_size, numbers_of
from slimsvm.export.rounding import warn_if_coarse
from slimsvm.persistence.atomic import replacing

DTYPES = ("float64", "float32", "int8")
LARGEST_NUMBER = 2**53 - 1  # Number.MAX_SAFE_INTEGER
CHUNK = 3 << 16  # bytes that become base64 at a time; a multiple of three


def to_javascript(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    max_bytes: int | None = None,
) -> int:
    """Write a fitted model as one ES module without dependencies.

    The module has ``predict(x)``, the label or target of a row (an array of numbers; labels that
    are integers beyond 2^53, which JavaScript would round, are strings),
    ``scores(x)``, what ``decision_function`` returns, as an array, ``probabilities(x)`` (null where
    the model has none), and ``about``: what it is, its classes and the names of its features.

    Parameters
    ----------
    estimator : estimator
        As for :func:`slimsvm.to_c`, with any kernel.
    path : str or path-like
        The file, usually ``.mjs`` or ``.js``; it is written whole or not at all.
    dtype : {'float64', 'float32', 'int8'}
        In which numbers are stored. Arithmetic is float64.
    max_bytes : int, optional
        Refuse to write a larger file.

    Returns
    -------
    int
        The bytes of the file.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from slimsvm import SparseSVC, to_javascript
    >>> model = SparseSVC(2).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with NamedTemporaryFile(suffix=".mjs") as file:
    ...     to_javascript(model, file.name) < 9000
    True
    """
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is none of {', '.join(map(repr, DTYPES))}.")
    d = described(estimator)
    numbers = numbers_of(d, dtype)
    check_size(numbers, max_bytes, len(SCRIPT), text=4 / 3)  # base64
    if dtype == "int8":
        warn_if_coarse(d, numbers)
    with replacing(path, text=True) as file:
        size = sum(file.write(piece) for piece in source(d, numbers))
        if max_bytes is not None and size > max_bytes:
            raise ValueError(
                f"The module takes {size:,} bytes, more than max_bytes={max_bytes:,}. Use "
                "dtype='int8', or a model with fewer vectors (slimsvm.compress)."
            )
    return size


def source(d: Description, n: Numbers) -> Iterator[str]:
    """The module, in pieces."""
    names = getattr(d.about, "feature_names_in_", None)
    about: dict[str, Any] = {
        "estimator": d.name,
        "version": __version__,
        "kernel": d.form,
        "answer": d.answer,
        "nFeatures": d.n_features,
        "nVectors": d.n_vectors,
        "nOutputs": d.n_outputs,
        "classes": None if d.classes is None else _labels(d),
        "features": None if names is None else [str(name) for name in names],
        "multiplications": d.n_multiplications,
        "bytes": n.nbytes,
    }
    yield f"// {d.name} of slimsvm {__version__}: see about, predict, scores and probabilities.\n"
    # whatever the names of classes are, they do not end a script element around the module
    said = json.dumps(about).replace("<", "\\u003c")
    yield f"export const about = {said};\n"
    yield f"const model = {json.dumps(_settings(d))};\n"
    yield "const numbers = {\n"
    for key, values in n.arrays.items():
        kind = {"i1": "Int8", "i4": "Int32", "f4": "Float32", "f8": "Float64"}
        yield f'  {key}: ["{kind[values.dtype.str[1:]]}", "'
        flat = values.ravel().astype(values.dtype.newbyteorder("<"), copy=False).view(np.uint8)
        for first in range(0, flat.size, CHUNK):
            yield base64.b64encode(flat[first : first + CHUNK].tobytes()).decode("ascii")
        yield '"],\n'
    yield "};\n"
    yield SCRIPT


def _labels(d: Description) -> list[Any]:
    assert d.classes is not None
    if d.classes.dtype.kind in "iubf":
        numbers = [int(c) for c in d.classes]
        # beyond that, a number of JavaScript is another one
        exact = max(map(abs, numbers)) <= LARGEST_NUMBER
        return numbers if exact else [str(n) for n in numbers]
    return [str(c) for c in d.classes.tolist()]


def _settings(d: Description) -> dict[str, Any]:
    p = d.probabilities
    return {
        "q": d.n_mapped,
        "matrix": d.metric is not None and d.metric.ndim == 2,
        "gamma": d.gamma,
        "coef0": d.coef0,
        "degree": d.degree,
        "border": d.border,
        "pairwise": d.pairwise,
        "joint": d.joint,
        "byPair": d.by_pair,
        "breakTies": d.break_ties,
        "probable": None if p is None else p.kind,
        "swapped": p is not None and p.swapped,
        "decides": p is not None and p.decides,
    }


SCRIPT = r"""
const KINDS = { Int8: Int8Array, Int32: Int32Array, Float32: Float32Array, Float64: Float64Array };
for (const key of Object.keys(numbers)) {
  const [kind, text] = numbers[key];
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  numbers[key] = new KINDS[kind](bytes.buffer);
}
const N = numbers;
const one = () => 1;
const scaleOf = (name) => (N[name + "_scale"] ? (j) => N[name + "_scale"][j] : one);
const basisScale = scaleOf("basis"), coefScale = scaleOf("coef"), metricScale = scaleOf("metric");
const nClasses = about.classes ? about.classes.length : 0;

function mapped(x) {
  if (x.length !== about.nFeatures) {
    throw new RangeError(`a row has ${about.nFeatures} features, got ${x.length}`);
  }
  const z = new Float64Array(model.q);
  for (let i = 0; i < x.length; i++) {
    const t = x[i] - (N.shift ? N.shift[i] : 0);
    if (!model.matrix) {
      z[i] = N.metric ? t * N.metric[i] : t;
      continue;
    }
    const own = t * metricScale(i);
    for (let k = 0; k < model.q; k++) z[k] += own * N.metric[i * model.q + k];
  }
  if (N.centre) for (let k = 0; k < model.q; k++) z[k] -= N.centre[k];
  return z;
}

function kernelValue(z, j) {
  const first = j * model.q, scale = basisScale(j);
  let s = 0;
  if (about.kernel === "rbf" || about.kernel === "laplacian") {
    for (let k = 0; k < model.q; k++) {
      const t = z[k] - scale * N.basis[first + k];
      s += about.kernel === "rbf" ? t * t : Math.abs(t);
    }
    return Math.exp(-N.width[N.width.length > 1 ? j : 0] * s);
  }
  for (let k = 0; k < model.q; k++) s += z[k] * N.basis[first + k];
  s = model.gamma * scale * s + model.coef0;
  if (about.kernel === "sigmoid") return Math.tanh(s);
  let v = 1;
  for (let k = 0; k < model.degree; k++) v *= s;
  return v;
}

function outputs(x) {
  const z = mapped(x), out = Array.from(N.intercept);
  if (about.kernel === "linear") {
    for (let j = 0; j < out.length; j++) {
      let s = 0;
      for (let i = 0; i < z.length; i++) s += z[i] * N.coef[j * z.length + i];
      out[j] += s * coefScale(j);
    }
    return out;
  }
  const width = N.ends ? nClasses - 1 : out.length;
  const part = new Float64Array(width);
  let own = 0;
  const close = () => {  // pair (i, j) has the vectors of both classes
    for (let c = own + 1; c < nClasses; c++) out[pair(own, c)] += part[c - 1];
    for (let c = 0; c < own; c++) out[pair(c, own)] += part[c];
    part.fill(0);
    own++;
  };
  for (let j = 0; j < about.nVectors; j++) {
    while (N.ends && j >= N.ends[own]) close();
    const v = kernelValue(z, j) * coefScale(j), to = N.ends ? part : out;
    for (let c = 0; c < width; c++) to[c] += v * N.coef[j * width + c];
  }
  while (N.ends && own < nClasses) close();
  return out;
}

const pair = (i, j) => i * (nClasses - 1) - (i * (i - 1)) / 2 + j - i - 1;
const largest = (v) => v.reduce((best, value, c) => (value > v[best] ? c : best), 0);

function votes(out, first) {
  const found = new Array(nClasses).fill(0);
  for (let i = 0; i < nClasses; i++) {
    for (let j = i + 1; j < nClasses; j++) {
      const f = out[pair(i, j)];
      found[f > 0 || (first && f === 0) ? i : j] += 1;
    }
  }
  return found;
}

function byClass(out) {  // votes, and a share below one half of the sum of values
  const sum = new Array(nClasses).fill(0);
  for (let i = 0; i < nClasses; i++) {
    for (let j = i + 1; j < nClasses; j++) {
      sum[i] += out[pair(i, j)];
      sum[j] -= out[pair(i, j)];
    }
  }
  return votes(out, true).map((v, c) => v + sum[c] / (3 * (Math.abs(sum[c]) + 1)));
}

function scoresOf(out) {
  if (about.answer === "sign") return [Math.abs(out[0]) <= model.border ? 0 : out[0]];
  if (model.joint) return [out[1] - out[0]];
  return model.pairwise && !model.byPair ? byClass(out) : out;
}

function placeOf(out) {
  if (model.pairwise) return largest(model.breakTies ? byClass(out) : votes(out, false));
  return out.length === 1 ? Number(out[0] > 0) : largest(out);
}

function softmax(v) {
  const most = Math.max(...v), e = v.map((value) => Math.exp(value - most));
  const sum = e.reduce((a, b) => a + b);
  return e.map((value) => value / sum);
}

const sigmoid = (t) => 1 / (1 + Math.exp(t));
const clipped = (p) => Math.min(Math.max(p, 1e-7), 1 - 1e-7);
const sigmoids = (v) => v.map((f, k) => sigmoid(N.prob_a[k] * f + N.prob_b[k]));

function coupled(out) {  // p'Qp is least with sum p = 1: (Q + 1) p = 1 but for a factor
  const r = sigmoids(out).map(clipped);
  const Q = Array.from({ length: nClasses }, () => new Array(nClasses + 1).fill(1));
  for (let i = 0; i < nClasses; i++) {
    for (let j = i + 1; j < nClasses; j++) {
      const p = r[pair(i, j)];
      Q[i][j] -= p * (1 - p);
      Q[j][i] -= p * (1 - p);
      Q[i][i] += (1 - p) * (1 - p);
      Q[j][j] += p * p;
    }
  }
  for (let k = 0; k < nClasses; k++) {
    for (let i = 0; i < nClasses; i++) {
      const t = Q[i][k] / Q[k][k];
      if (i !== k) for (let j = k; j <= nClasses; j++) Q[i][j] -= t * Q[k][j];
    }
  }
  const p = Q.map((row, i) => Math.max(row[nClasses] / row[i], 0));
  const sum = p.reduce((a, b) => a + b);
  return p.map((value) => value / sum);
}

function probabilitiesOf(out) {
  const scores = scoresOf(out);
  if (model.probable === "softmax") {
    return out.length > 1 ? softmax(out) : [sigmoid(out[0]), sigmoid(-out[0])];
  }
  if (model.probable === "pairs") {
    if (nClasses === 2) {
      const first = clipped(sigmoids([-out[0]])[0]);
      return [first, 1 - first];
    }
    const p = coupled(out);
    if (model.swapped) {
      const i = largest(byClass(out)), j = largest(p);
      [p[i], p[j]] = [p[j], p[i]];
    }
    return p;
  }
  if (model.probable === "temperature") {
    const both = nClasses === 2 ? [-scores[0], scores[0]] : scores;
    return softmax(both.map((f) => N.prob_a[0] * f));
  }
  const each = sigmoids(scores);
  if (nClasses === 2) return [1 - each[0], each[0]];
  const sum = each.reduce((a, b) => a + b);
  return each.map((value) => (sum > 0 ? value / sum : 1 / nClasses));
}

/** What decision_function returns for a row: an array of numbers. */
export function scores(x) {
  return scoresOf(outputs(x));
}

/** Probabilities of the classes of a row, in the order of about.classes; null if there are none. */
export function probabilities(x) {
  return model.probable ? probabilitiesOf(outputs(x)) : null;
}

/** The label of a row, its target, or 1 (inside) and -1. */
export function predict(x) {
  const out = outputs(x);
  if (about.answer === "number") return out[0];
  if (about.answer === "sign") return scoresOf(out)[0] >= 0 ? 1 : -1;
  return about.classes[model.decides ? largest(probabilitiesOf(out)) : placeOf(out)];
}
"""
