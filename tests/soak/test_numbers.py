"""Whatever the numbers are: a finite model with a true ending, or a refusal in words."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from slimsvm import open_rows
from slimsvm.ending import REASONS
from tests.reference.certificates import ESTIMATORS as CERTIFIED
from tests.reference.certificates import claims
from tests.soak.problems import EXACT, MAKERS, fitted, hostile, ordinary, target_of, values


def test_hostile_numbers(campaign):
    names = sorted(MAKERS)

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = names[seed % len(names)]
        X, y, f, weight = hostile(rng)
        C, gamma = 10.0 ** rng.uniform(-10, 10), rng.choice(["scale", 1e-8, 0.5, 1e6])
        gamma = gamma if gamma == "scale" else float(gamma)
        try:
            with np.errstate(all="ignore"):
                model = fitted(name, C, gamma, X, target_of(name, y, f), weight)
                said = values(model, X)
        except ValueError as refused:
            assert len(str(refused)) > 20, f"{name}: refused without words: {refused}"
            return
        assert np.isfinite(said).all(), f"{name}: outputs that are not finite"
        assert model.status_.reason in REASONS and np.isfinite(model.certificate_.objective)
        low, high = model.certificate_.interval
        assert low <= high, f"{name}: the interval {low} to {high} is empty"
        assert model.certificate_.gap >= 0.0

    campaign("hostile_numbers").run(
        trial, "a finite model with a true status, or a refusal in words"
    )


def test_certificates(campaign):
    names = sorted(CERTIFIED)

    def trial(seed):
        name = names[seed % len(names)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = claims(name, 100_000 + seed)
        false = [str(claim) for claim in found if not claim.true]
        assert not false, f"{name} {100_000 + seed}: {false}"

    campaign("certificates").run(
        trial, "every claimed interval contains the optimum of an independent solver"
    )


RELATIONS = (
    "permuted", "doubled", "swapped", "rotated", "csr", "mapped", "float32", "threads", "shifted",
)  # fmt: skip


def test_metamorphic_relations(campaign, tmp_path):
    def trial(seed):
        rng = np.random.default_rng(seed)
        name, relation = EXACT[seed % len(EXACT)], RELATIONS[(seed // len(EXACT)) % len(RELATIONS)]
        X, y, f = ordinary(rng)
        target, C, gamma = (
            target_of(name, y, f),
            10.0 ** rng.uniform(-1, 2),
            10.0 ** rng.uniform(-2, 0),
        )
        new = rng.standard_normal((10, X.shape[1])) * X.std()
        base = values(fitted(name, C, gamma, X, target), new)
        tolerance, sign = 1e-5, 1.0
        if relation == "permuted":
            order = rng.permutation(len(y))
            other = values(fitted(name, C, gamma, X[order], target[order]), new)
        elif relation == "doubled":
            two = fitted(name, C, gamma, np.repeat(X, 2, axis=0), np.repeat(target, 2))
            other = values(two, new)
            base = values(fitted(name, C, gamma, X, target, np.full(len(y), 2.0)), new)
        elif relation == "swapped":
            if name not in ("SVC", "LinearSVC"):
                return
            other, sign = values(fitted(name, C, gamma, X, 1 - target), new), -1.0
        elif relation == "rotated":
            turn = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
            other = values(fitted(name, C, gamma, X @ turn, target), new @ turn)
        elif relation == "shifted":
            if name.startswith("Linear"):  # its intercept is penalised
                return
            other = values(fitted(name, C, gamma, X + 3.0, target), new + 3.0)
        elif relation == "csr":
            other = values(fitted(name, C, gamma, sp.csr_matrix(X), target), sp.csr_matrix(new))
        elif relation == "mapped":
            np.save(tmp_path / "X.npy", X)
            mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
            other, tolerance = values(fitted(name, C, gamma, mapped, target), new), 0.0
        elif relation == "float32":
            small = X.astype(np.float32)
            base = values(fitted(name, C, gamma, small.astype(float), target), new)
            other, tolerance = values(fitted(name, C, gamma, small, target), new), 1e-3
        else:
            model = MAKERS[name](C, gamma)
            if not hasattr(model, "n_jobs"):
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = values(model.set_params(n_jobs=2).fit(X, target), new)
            tolerance = 0.0
        scale, apart = 1.0 + np.abs(base).max(), base - sign * other
        worst = np.abs(apart).max() / scale
        if tolerance and not name.startswith("Linear"):
            # where no support vector is free, any intercept of an interval is optimal
            worst = min(worst, np.ptp(apart) / scale)
        assert worst <= tolerance, f"{name}, {relation}: differs by {worst:.2g}"

    campaign("metamorphic_relations").run(
        trial,
        "the same model for permuted, doubled, rotated and shifted rows, swapped labels, CSR, "
        "memory maps, float32, any number of threads",
    )


FROM_ROWS = {
    "LinearSVC": lambda C: slimsvm.LinearSVC(C=C),
    "LinearSVR": lambda C: slimsvm.LinearSVR(C=C, epsilon=0.05),
    "SparseSVC": lambda C: slimsvm.SparseSVC(4, C=C, random_state=0),
    "SparseSVR": lambda C: slimsvm.SparseSVR(4, C=C, random_state=0),
    "ReducedSVC": lambda C: slimsvm.ReducedSVC(4, C=C, random_state=0),
}
SOURCES = ("npy", "parquet", "csv", "svm", "batches", "dask")


def from_source(kind, X, target, block, folder):
    """The same rows in the same blocks, from somewhere else; None: what reads them is missing."""
    if kind == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", target)
        return open_rows(folder / "X.npy", target=folder / "y.npy", batch_rows=block)
    if kind == "batches":
        edges = range(0, len(X), block)
        batches = [(X[k : k + block], target[k : k + block]) for k in edges]
        return open_rows(batches)
    if kind == "svm":
        lines = [
            f"{label!r} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
            for row, label in zip(X.tolist(), target.tolist(), strict=True)
        ]
        (folder / "X.svm").write_text("\n".join(lines) + "\n")
        return open_rows(folder / "X.svm", batch_rows=block)
    if kind == "dask":
        try:
            import dask.array
        except ImportError:
            return None
        return dask.array.from_array(X, chunks=(block, -1))
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        return None
    names = [f"x{j}" for j in range(X.shape[1])]
    table = pandas.DataFrame(X, columns=names).assign(label=target)
    path = folder / f"X.{kind}"
    table.to_parquet(path) if kind == "parquet" else table.to_csv(path, index=False)
    return open_rows(path, target="label", batch_rows=block)


def test_sources(campaign, tmp_path):
    names = sorted(FROM_ROWS)

    def trial(seed):
        rng = np.random.default_rng(seed)
        name, kind = names[seed % len(names)], SOURCES[(seed // len(names)) % len(SOURCES)]
        X, y, f = ordinary(rng, 40)
        target, C, block = (
            target_of(name, y, f),
            10.0 ** rng.uniform(-1, 2),
            int(rng.integers(4, 16)),
        )
        rows = from_source(kind, X, target, block, tmp_path)
        if rows is None:
            return
        new = rng.standard_normal((10, X.shape[1])) * X.std()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # LIBSVM text is read as sparse rows, whose sums have another order
            same = sp.csr_array(X) if kind == "svm" else X
            base = FROM_ROWS[name](C).fit(open_rows(same, target=target, batch_rows=block))
            other = FROM_ROWS[name](C)
            if kind == "dask":
                import dask.array

                other.fit(rows, dask.array.from_array(target, chunks=block))
            else:
                other.fit(rows)
            whole = values(fitted(name, C, "scale", X, target), new)
        assert np.array_equal(values(base, new), values(other, new)), f"{name}, {kind}: other bits"
        if name.startswith("Linear"):
            apart = np.abs(values(base, new) - whole).max() / (1.0 + np.abs(whole).max())
            assert apart <= 1e-5, f"{name}: {apart:.2g} from the fit in memory"

    campaign("sources").run(
        trial,
        "memory, memory map, Parquet, CSV, LIBSVM text, batches and Dask in the same blocks: the "
        "same bits; linear models are those of rows in memory",
    )


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_same_bits_for_any_number_of_threads(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    target = target_of(name, y, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (
            values(MAKERS[name](1.0, 0.5).set_params(n_jobs=n).fit(X, target), X[:50])
            for n in (1, 2)
        )
    np.testing.assert_array_equal(one, two)
