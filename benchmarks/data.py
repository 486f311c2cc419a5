"""The real data sets of the benchmarks.

They come from the folder that SLIMSVM_DATA names, else from the cache, else from their sources.
"""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm import datasets


def folder() -> Path:
    """The folder with the data sets, for files that ``slimsvm.datasets`` does not read.

    The error says what to do if there is none.
    """
    named = os.environ.get("SLIMSVM_DATA")
    if not named or not Path(named).is_dir():
        raise SystemExit(
            "The data set is not here. Set the environment variable SLIMSVM_DATA to the folder "
            "that holds its files."
        )
    return Path(named)


def load(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """X_train, y_train, X_test, y_test; float32."""
    try:
        return datasets.load(name, return_X_y=True)
    except datasets.DownloadError as error:
        raise SystemExit(str(error)) from error


def ocr_letters() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Words as (length, 128) float32 pixels of 0 and 1, their letters, and the fold of each word.

    Letters are numbers from 0 to 25.
    """
    z = np.load(folder() / "ocr_letters.npz")
    pixels, edges = np.unpackbits(z["X_packed"], axis=1).astype(np.float32), z["offsets"][1:-1]
    return np.split(pixels, edges), np.split(z["y"].astype(np.int64), edges), z["folds"]


def web_pages() -> tuple[sp.csr_matrix, np.ndarray]:
    """Platt's web pages (w8a): 49,749 rows of 300 binary features, and signs."""
    z = np.load(folder() / "w8a.npz")
    parts = [
        sp.csr_matrix(
            tuple(z[f"X_{part}_{what}"] for what in ("data", "indices", "indptr")),
            shape=tuple(z[f"X_{part}_shape"]),
        )
        for part in ("train", "test")
    ]
    X = sp.vstack(parts).tocsr().astype(np.float32)
    return X, np.where(np.concatenate([z["y_train"], z["y_test"]]) > 0, 1.0, -1.0)


def conll2000(
    min_count: int = 3,
) -> tuple[list[sp.csr_matrix], list[np.ndarray], list[sp.csr_matrix], list[np.ndarray]]:
    """Chunking: sentences as (length, n_features) matrices of 0 and 1, and their chunk tags.

    There is a training part and a test part. The features of a token are its word and part of
    speech, those of two neighbours on either side, pairs and triples of them, the first and the
    last one to three letters of the word, and its shape; all that occur ``min_count`` times in the
    training part.
    """
    sentences = [s for part in ("train", "test") for s in _sentences(part)]
    n_train, lengths = len(_sentences("train")), np.array([len(s) for s in sentences])
    edges = np.cumsum(lengths)[:-1]
    words, tags, chunks = (np.array([token[k] for s in sentences for token in s]) for k in range(3))
    columns = _indexed(
        _keys(words, tags, np.repeat(np.arange(lengths.size), lengths)),
        int(lengths[:n_train].sum()),
        min_count,
    )
    width = int(columns.max()) + 1
    X = [
        sp.csr_matrix(
            (
                np.ones(kept.sum(), np.float32),
                rows[kept],
                np.append(0, np.cumsum(kept.sum(axis=1))),
            ),
            shape=(len(rows), width),
        )
        for rows in np.split(columns, edges)
        for kept in [rows >= 0]
    ]
    Y = np.split(chunks, edges)
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


def _sentences(part: str) -> list[list[list[str]]]:
    """Sentences of tokens: word, part of speech, chunk tag."""
    with lzma.open(folder() / "conll2000" / f"{part}.txt.xz", "rt", encoding="latin1") as file:
        text = file.read()
    return [
        [line.split() for line in sentence.split("\n") if line.strip()]
        for sentence in text.strip().split("\n\n")
    ]


def _keys(words: np.ndarray, tags: np.ndarray, sentence: np.ndarray) -> list[np.ndarray]:
    """For each kind of feature a number for every token; equal numbers are the same feature."""

    def codes(values: Any) -> np.ndarray:
        return np.unique(values, return_inverse=True)[1] + 1

    def at(code: np.ndarray, step: int) -> np.ndarray:
        """The code of the token ``step`` places on, 0 beyond the sentence."""
        place = np.arange(code.size) + step
        inside = (place >= 0) & (place < code.size)
        place = np.where(inside, place, 0)
        return np.where(inside & (sentence[place] == sentence), code[place], 0)

    def joined(*several: np.ndarray) -> np.ndarray:
        key = several[0]
        for code in several[1:]:
            key = codes(key) * (int(code.max()) + 1) + code
        return key

    word, tag = codes(words), codes(tags)
    w, t = ({step: at(code, step) for step in range(-2, 3)} for code in (word, tag))
    parts = [codes([v[:k].lower() for v in words]) for k in (1, 2, 3)] + [
        codes([v[-k:].lower() for v in words]) for k in (1, 2, 3)
    ]
    shape = codes(
        [f"{v[0].isupper()}{v.isupper()}{any(c.isdigit() for c in v)}{'-' in v}" for v in words]
    )
    pairs = (
        [joined(t[k], t[k + 1]) for k in range(-2, 2)]
        + [joined(w[k], w[k + 1]) for k in (-1, 0)]
        + [joined(w[0], t[k]) for k in (-1, 1)]
    )
    triples = [joined(t[k], t[k + 1], t[k + 2]) for k in range(-2, 1)]
    return [*w.values(), *t.values(), *pairs, *triples, *parts, shape]


def _indexed(keys: list[np.ndarray], n_train: int, min_count: int) -> np.ndarray:
    """(tokens, kinds): the number of the feature; -1: too rare in the first n_train tokens."""
    columns, used = np.empty((keys[0].size, len(keys)), np.int32), 0
    for k, key in enumerate(keys):
        known, counts = np.unique(key[:n_train], return_counts=True)
        known = known[counts >= min_count]
        place = np.minimum(np.searchsorted(known, key), known.size - 1)
        columns[:, k] = np.where(known[place] == key, place + used, -1)
        used += known.size
    return columns


def dense(X: Any) -> np.ndarray:
    """As an array."""
    return X.toarray() if sp.issparse(X) else X
