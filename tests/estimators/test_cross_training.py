"""CrossTraining: the rule against its naive twin, what is reported, weights, bad input."""

import os
import pickle
import signal
import warnings
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import _ovr_decision_function

from slimsvm import SVC, CrossTraining, LinearSVC, SparseSVC
from slimsvm.cross_training.models import ended
from slimsvm.cross_training.subsets import BEYOND, class_counts
from slimsvm.run import Status


def moons(n, seed=0, noise=0.4):
    """Two bananas that overlap."""
    return make_moons(n, noise=noise, random_state=seed)


LOG = []


class Logged(ClassifierMixin, BaseEstimator):
    """An SVC that says what it was trained on."""

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def fit(self, X, y, sample_weight=None):
        LOG.append((X.copy(), y.copy(), sample_weight))
        self.machine_ = svm.SVC(gamma=self.gamma, tol=1e-8).fit(X, y, sample_weight)
        self.classes_ = self.machine_.classes_
        return self

    def decision_function(self, X):
        return self.machine_.decision_function(X)


class Constant(ClassifierMixin, BaseEstimator):
    """Whatever it is asked, it gives the same answer."""

    def __init__(self, value=1.0, reason="converged", columns=None):
        self.value = value
        self.reason = reason
        self.columns = columns

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.status_ = Status(self.reason, f"Constant: {self.reason}.")
        return self

    def decision_function(self, X):
        return np.full(len(X) if self.columns is None else (len(X), self.columns), self.value)


# -- the rule --------------------------------------------------------------------------------------


def judges(machines, subsets, row, held_out):
    """Models that judge a row: with held_out those that have not seen it, if there are any."""
    unseen = [
        machine
        for machine, rows in zip(machines, subsets, strict=True)
        if not (rows == row).all(axis=1).any()
    ]
    return unseen if held_out and unseen else machines


def naive(machines, subsets, X, sign, held_out):
    """Steps 3 to 5 of the algorithm, one row at a time: the kept rows, and how many are noise and
    redundant.
    """
    kept, n_noise, n_redundant = [], 0, 0
    for i in range(len(X)):
        own = judges(machines, subsets, X[i], held_out)
        margins = [sign[i] * float(machine.decision_function(X[i : i + 1])[0]) for machine in own]
        m = sum(margins) / len(margins)
        v = sum((m - margin) ** 2 for margin in margins) / len(margins)
        if m + v < 0:
            n_noise += 1
        elif m - v > 1 + BEYOND:
            n_redundant += 1
        else:
            kept.append(i)
    return kept, n_noise, n_redundant


@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.parametrize(("n_subsets", "subset_size"), [(1, 0.3), (5, 120), (8, 0.2)])
def test_the_rule_is_that_of_its_naive_twin(n_subsets, subset_size, held_out):
    X, y = moons(400)
    LOG.clear()
    model = CrossTraining(Logged(), n_subsets, subset_size, held_out=held_out, random_state=3).fit(
        X, y
    )
    *subsets, final = LOG
    size = subset_size if isinstance(subset_size, int) else round(subset_size * 400)
    assert len(subsets) == n_subsets
    for rows, labels, _ in subsets:
        assert np.bincount(labels).tolist() == [size // 2, size // 2], "half from each class"
        assert len(np.unique(rows, axis=0)) == size, "without repetition"
    assert len({rows.tobytes() for rows, _, _ in subsets}) == n_subsets
    machines = [svm.SVC(gamma=1.0, tol=1e-8).fit(rows, labels) for rows, labels, _ in subsets]
    kept, n_noise, n_redundant = naive(
        machines, [rows for rows, _, _ in subsets], X, 2 * y - 1, held_out
    )
    np.testing.assert_array_equal(model.kept_indices_[0], kept)
    assert (model.n_noise_[0], model.n_redundant_[0], model.n_kept_[0]) == (
        n_noise,
        n_redundant,
        len(kept),
    )
    assert n_noise > 0 and (n_redundant > 0 or n_subsets > 5)
    np.testing.assert_array_equal(final[0], X[kept])
    np.testing.assert_array_equal(
        model.decision_function(X),
        svm.SVC(gamma=1.0, tol=1e-8).fit(X[kept], y[kept]).decision_function(X),
    )
    if not held_out:
        margins = (2 * y - 1) * np.stack([machine.decision_function(X) for machine in machines])
        np.testing.assert_allclose(model.margin_means_[0], margins.mean(0), atol=1e-12)
        np.testing.assert_allclose(model.margin_variances_[0], margins.var(0), atol=1e-12)


def test_machines_that_have_not_seen_a_row_find_more_noise():
    X, y = moons(400)
    machine = SVC(C=100.0, gamma=20.0)  # which learns its rows by heart
    noise = [
        CrossTraining(machine, 5, 0.5, held_out=held, random_state=0).fit(X, y).n_noise_[0]
        for held in (True, False)
    ]
    assert noise[0] > 1.5 * noise[1]


@pytest.mark.parametrize("seed", range(3))
def test_fewer_support_vectors_for_the_same_accuracy(seed):
    X, y = moons(4400, seed)
    train, test = slice(0, 400), slice(400, None)
    plain = SVC(gamma=1.0).fit(X[train], y[train])
    model = CrossTraining(SVC(gamma=1.0), subset_size=200, random_state=seed).fit(
        X[train], y[train]
    )
    assert model.estimators_[0].n_support_.sum() < 0.5 * plain.n_support_.sum()
    assert model.score(X[test], y[test]) > plain.score(X[test], y[test]) - 0.02
    assert model.n_kept_ + model.n_noise_ + model.n_redundant_ == 400


def test_subsets_with_the_balance_of_all_rows():
    """Where a class is rare, balanced subsets take rows of the other for noise."""
    X, y = moons(6000, noise=0.6)
    few = (y == 0) | (np.arange(6000) % 5 == 0)
    X, y = X[few], y[few]
    LOG.clear()
    CrossTraining(Logged(), 3, 300, balanced_subsets=False, random_state=0).fit(X[:1000], y[:1000])
    assert all(
        abs(labels.mean() - y[:1000].mean()) < 1 / 300 and len(labels) == 300
        for _, labels, _ in LOG[:3]
    )
    scores, noise = {}, {}
    for balanced in (True, False):
        model = CrossTraining(SVC(gamma=1.0), balanced_subsets=balanced, random_state=0).fit(
            X[:1500], y[:1500]
        )
        scores[balanced], noise[balanced] = model.score(X[1500:], y[1500:]), model.n_noise_[0]
    plain = SVC(gamma=1.0).fit(X[:1500], y[:1500])
    assert scores[False] > plain.score(X[1500:], y[1500:]) - 0.02
    assert scores[False] > scores[True] and noise[False] < noise[True]
    assert model.estimators_[0].n_support_.sum() < 0.5 * plain.n_support_.sum()


def test_what_is_reported():
    X, y = moons(600)
    y = np.array(["no", "yes"])[y]
    weight = np.where(y == "yes", 2.0, 1.0)
    weight[:20] = 0.0
    model = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X, y, weight)
    assert model.classes_.tolist() == ["no", "yes"] and model.pairs_.tolist() == [["no", "yes"]]
    (rows,), (kept,) = model.pair_indices_, model.kept_indices_
    np.testing.assert_array_equal(rows, np.arange(20, 600))
    assert (
        set(kept) <= set(rows)
        and kept.size == model.n_kept_[0]
        and model.n_kept_ + model.n_noise_ + model.n_redundant_ == rows.size
    )
    for balance, some in ((model.balance_before_, rows), (model.balance_after_, kept)):
        share = weight[some[y[some] == "yes"]].sum() / weight[some].sum()
        np.testing.assert_allclose(balance, [[1 - share, share]])
    assert model.shifts_.tolist() == [0.0]
    np.testing.assert_array_equal(
        model.estimators_[0].support_vectors_, X[kept[model.estimators_[0].support_]]
    )


def test_several_classes_are_pairs():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = CrossTraining(SVC(gamma=0.3), random_state=0).fit(X, names)
    assert (
        model.pairs_.tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
        and len(model.estimators_) == 3
    )
    values = [
        svm.SVC(gamma=0.3, tol=1e-8).fit(X[kept], y[kept]).decision_function(X)
        for kept in model.kept_indices_
    ]
    values = np.stack(values, axis=1)
    expected = _ovr_decision_function(values > 0, values, 3)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)
    assert (
        model.predict(X) == np.array(["a", "b", "c"])[expected.argmax(1)]
    ).all() and model.score(X, names) > 0.93
    for rows, pair in zip(model.pair_indices_, model.pairs_, strict=True):
        assert set(names[rows]) == set(pair) and rows.size == 100


# -- metamorphic -----------------------------------------------------------------------------------


def test_any_number_of_jobs_gives_the_same_bits():
    X, y = make_blobs(500, centers=4, cluster_std=2.5, random_state=0)
    one = CrossTraining(SVC(gamma=0.3), random_state=0).fit(X, y)
    contexts = [None, "loky"]
    for backend in contexts:
        with (
            joblib.parallel_config(backend, n_jobs=2)
            if backend
            else joblib.parallel_config(n_jobs=1)
        ):
            two = CrossTraining(SVC(gamma=0.3), n_jobs=2, random_state=0).fit(X, y)
        assert two.decision_function(X).tobytes() == one.decision_function(X).tobytes()
        for name in ("kept_indices_", "margin_means_", "margin_variances_"):
            assert all(
                a.tobytes() == b.tobytes()
                for a, b in zip(getattr(one, name), getattr(two, name), strict=True)
            )


def test_weights_are_repetitions():
    X, y = moons(300)
    weight = np.random.default_rng(0).integers(0, 4, size=300)
    model = CrossTraining(SVC(gamma=1.0), 3, 0.4, refit_intercept=True, random_state=0)
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(weighted.balance_after_, repeated.balance_after_)
    np.testing.assert_allclose(weighted.shifts_, repeated.shifts_, atol=1e-6)
    without = clone(model).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(weighted.decision_function(X), without.decision_function(X))


def test_the_order_of_the_rows_does_not_matter():
    X, y = moons(300)
    order = np.random.default_rng(0).permutation(300)
    one = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X, y)
    other = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X[order], y[order])
    assert set(order[other.kept_indices_[0]]) == set(one.kept_indices_[0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)


def test_sparse_rows_are_rows():
    X, y = moons(300)
    dense = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X, y)
    sparse = CrossTraining(SVC(gamma=1.0), random_state=0).fit(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.kept_indices_[0], sparse.kept_indices_[0])
    np.testing.assert_allclose(
        dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-6
    )


def test_a_precomputed_kernel():
    X, y = load_iris(return_X_y=True)
    K = rbf_kernel(X, gamma=0.3)
    # small subsets would differ: rows of a precomputed kernel are not compared with one another
    model = CrossTraining(SVC(kernel="precomputed"), subset_size=100, refit_intercept=True).fit(
        K, y
    )
    _, distinct = np.unique(X, axis=0, return_index=True)
    assert distinct.size < 150, "there are equal rows, which only matter where they are drawn"
    other = CrossTraining(SVC(gamma=0.3), subset_size=100, refit_intercept=True).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(K[:30]), other.decision_function(X[:30]), atol=1e-6
    )
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :20])


# -- the intercept ---------------------------------------------------------------------------------


def hinge(values, y, weight=1.0):
    return float(np.sum(weight * np.maximum(0.0, 1.0 - (2 * y - 1) * values)))


@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 5.0}])
def test_the_intercept_is_best_for_all_rows(class_weight):
    X, y = moons(900)
    X, y = (
        X[(y == 0) | (np.arange(900) % 6 == 0)],
        y[(y == 0) | (np.arange(900) % 6 == 0)],
    )  # not balanced
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=y.size)
    machine = SVC(gamma=1.0, class_weight=class_weight)
    plain = CrossTraining(machine, random_state=0).fit(X, y, weight)
    model = CrossTraining(machine, refit_intercept=True, random_state=0).fit(X, y, weight)
    values = plain.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), values + model.shifts_[0], atol=1e-12)
    cost = weight * np.where(y == 1, 5.0 if class_weight else 1.0, 1.0)
    best = min(hinge(values + b, y, cost) for b in (2 * y - 1) - values)  # the minimum is at a kink
    assert hinge(model.decision_function(X), y, cost) == pytest.approx(best, rel=1e-12)
    assert best < hinge(values, y, cost)
    assert model.shifts_[0] != 0.0


def test_an_intercept_that_is_best_already_stays():
    X, y = make_blobs(200, centers=[[-5, 0], [5, 0]], random_state=0)
    model = CrossTraining(SVC(kernel="linear"), refit_intercept=True, random_state=0).fit(X, y)
    assert model.shifts_[0] == 0.0 and model.score(X, y) == 1.0


# -- the exact model -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, 2500])
def test_a_start_of_the_exact_machine(n):
    X, y = moons(n)
    weight = np.random.default_rng(0).integers(0, 3, size=n)
    exact = SVC(gamma=1.0, class_weight={0: 2.0}).fit(X, y, weight)
    model = CrossTraining(
        SVC(gamma=1.0, class_weight={0: 2.0}), warm_start_dual=True, random_state=0
    ).fit(X, y, weight)
    (machine,) = model.estimators_
    np.testing.assert_array_equal(model.kept_indices_[0], np.flatnonzero(weight))
    assert model.n_noise_[0] == model.n_redundant_[0] == 0
    assert machine.certificate_.holds and machine.certificate_.objective == pytest.approx(
        exact.certificate_.objective, rel=1e-4
    )
    np.testing.assert_allclose(
        model.decision_function(X), exact.decision_function(X), atol=1e-6 if n <= 1000 else 2e-2
    )
    assert not machine.warm_start and not hasattr(machine, "_start")


def test_the_start_is_used():
    """From the solution itself there is next to nothing left to do."""
    X, y = moons(2500)
    exact = SVC(gamma=1.0).fit(X, y)
    a = np.zeros(2500)
    a[exact.support_] = np.abs(exact.dual_coef_[0])
    again = SVC(gamma=1.0)._fit_from(a, X, y)
    assert again.n_iter_[0] < 0.05 * exact.n_iter_[0]
    too_much = SVC(gamma=1.0)._fit_from(
        np.full(2500, 7.0), X, y
    )  # neither within the bounds nor balanced
    assert too_much.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-4)


# -- small and odd data ----------------------------------------------------------------------------


def test_how_many_are_drawn():
    for size in range(2, 30):
        for counts in ((1, 1), (1, 28), (15, 15), (3, 12), (20, 9)):
            taken = class_counts(min(size, sum(counts)), counts)
            assert sum(taken) == min(size, sum(counts)) and min(taken) >= 1
            assert all(t <= c for t, c in zip(taken, counts, strict=True))
            if min(counts) >= -(-size // 2):
                assert abs(taken[0] - taken[1]) <= 1
            taken = class_counts(min(size, sum(counts)), counts, balanced=False)
            assert sum(taken) == min(size, sum(counts)) and min(taken) >= 1
            assert all(t <= c for t, c in zip(taken, counts, strict=True))
            share = counts[0] / sum(counts) * sum(taken)
            assert abs(taken[0] - share) <= 0.5 or min(taken) == 1


@pytest.mark.parametrize("n_rare", [1, 3])
def test_every_subset_has_both_classes(n_rare):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), np.zeros(300, int)
    y[:n_rare], X[:n_rare] = 1, 0.1
    LOG.clear()
    model = CrossTraining(Logged(), random_state=0).fit(X, y)
    assert all(set(labels) == {0, 1} for _, labels, _ in LOG)
    assert set(y[model.kept_indices_[0]]) == {0, 1}
    assert np.isfinite(model.decision_function(X)).all()


def test_a_class_that_would_vanish_keeps_what_is_nearest_to_the_margin():
    X, y = moons(300)
    model = CrossTraining(Constant(0.5), random_state=0).fit(
        X, y
    )  # class 0 is noise, by all accounts
    assert set(y[model.kept_indices_[0]]) == {0, 1} and model.n_noise_[0] == 0, (
        "its rows are all alike"
    )
    model = CrossTraining(Constant(5.0), random_state=0).fit(
        X, y
    )  # noise and redundant, nothing is left
    assert set(y[model.kept_indices_[0]]) == {0, 1}
    # of one that can tell rows apart, those that are nearest
    X = np.r_[np.linspace(0, 1, 200), np.linspace(-100, -90, 60)][:, None]
    y = np.r_[np.zeros(200, int), np.ones(60, int)]
    model = CrossTraining(Slope(), subset_size=40, balanced_subsets=True, random_state=0).fit(
        X, y
    )  # class 1 has margins from -100 to -90
    kept = model.kept_indices_[0]
    np.testing.assert_array_equal(kept[y[kept] == 1], np.arange(240, 260))
    assert model.n_noise_[0] == 40 + np.count_nonzero(X[:200] > 0)


class Slope(Constant):
    def decision_function(self, X):
        return X[:, 0]


def test_few_rows():
    X = np.array([[0.0], [1.0]])
    model = CrossTraining(random_state=0).fit(X, ["a", "b"])
    assert model.predict(X).tolist() == ["a", "b"] and model.n_kept_.tolist() == [2]
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:4, 50:54, 100:104]
    model = CrossTraining(SVC(C=100.0), random_state=0).fit(X[few], y[few])
    assert model.score(X[few], y[few]) == 1.0


def test_equal_rows_with_all_labels():
    model = CrossTraining(random_state=0).fit(np.ones((60, 2)), np.arange(60) % 3)
    assert np.isfinite(model.decision_function(np.ones((2, 2)))).all()


def test_random_states_inside():
    X, y = moons(300)
    one, two = (CrossTraining(SparseSVC(5), random_state=7).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    given = CrossTraining(SparseSVC(5, random_state=0), random_state=7).fit(X, y)
    assert given.estimators_[0].random_state == 0


def test_inside_a_search_and_a_pipeline():
    X, y = moons(300)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), CrossTraining(SVC(), random_state=0)),
        {"crosstraining__estimator__C": [0.1, 10.0]},
    )
    assert search.fit(X, y).best_score_ > 0.8
    model = CrossTraining(make_pipeline(StandardScaler(), SVC()), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_verbose(capsys):
    X, y = moons(300)
    CrossTraining(SVC(gamma=1.0), random_state=0, verbose=True).fit(X, np.array(["no", "yes"])[y])
    assert capsys.readouterr().out.startswith("CrossTraining  'no' and 'yes': 300 rows, ")


def test_how_it_ended():
    X, y = moons(400)
    model = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X, y)
    final = model.estimators_[0]
    assert model.status_.converged and model.certificate_ == replace(
        final.certificate_, scope="subspace"
    )
    assert (
        CrossTraining(SVC(gamma=1.0), warm_start_dual=True).fit(X, y).certificate_.scope == "full"
    )  # nothing was discarded
    X, y = load_iris(return_X_y=True)
    model = CrossTraining(SVC(), random_state=0).fit(X, y)
    own = [machine.certificate_ for machine in model.estimators_]
    assert model.certificate_.objective == pytest.approx(sum(one.objective for one in own))
    assert (
        model.certificate_.violation == max(one.violation for one in own)
        and model.certificate_.holds
    )
    other = CrossTraining(LogisticRegression(), random_state=0).fit(X, y)
    assert (other.status_.reason, other.certificate_) == (
        "trained",
        None,
    ) and "LogisticRegression" in str(other.status_)


def test_machines_that_do_not_converge():
    X, y = moons(400)
    with pytest.warns(ConvergenceWarning):
        model = CrossTraining(SVC(C=100.0, max_iter=2), random_state=0).fit(X, y)
    assert model.status_.reason == "max_iter" and str(model.status_).startswith(
        "1 of 1 final models did not converge. Solver terminated early (max_iter=2)"
    )
    rough = Constant(2.0, "max_time")
    assert str(CrossTraining(rough, n_subsets=2).fit(X, y).status_).startswith("1 of 1 final")
    good, late = Status("converged", "Fine."), Status("max_time", "Late.")
    early = ended([SimpleNamespace(status_=good)], [good, late, late])
    assert (
        early.reason == "max_time"
        and str(early).startswith("2 of 3 models on subsets")
        and str(early).endswith("Late.")
    )


class Timed(Constant):
    """Notes the limits that it is given; takes no time."""

    def __init__(self, value=0.5, max_time=None):
        super().__init__(value)
        self.max_time = max_time

    def fit(self, X, y):
        LOG.append(self.max_time)
        return super().fit(X, y)


@pytest.mark.parametrize(
    "wrap",
    [Timed, lambda **given: make_pipeline(StandardScaler(), Timed(**given))],
    ids=["alone", "in a pipeline"],
)
def test_max_time_is_shared(wrap):
    X, y = load_iris(return_X_y=True)  # three pairs
    LOG.clear()
    CrossTraining(wrap(), n_subsets=2, max_time=600.0, random_state=0).fit(X, y)
    subsets, finals = np.array(LOG[:6]), np.array(LOG[6:])
    # nothing takes any time: half for the six models on subsets, of which the first pair has a
    # third, and so on; then all for the final ones
    np.testing.assert_allclose(subsets, [50, 100, 75, 150, 150, 300], atol=5.0)
    np.testing.assert_allclose(finals, [200, 300, 600], atol=5.0)
    LOG.clear()
    CrossTraining(wrap(max_time=60.0), n_subsets=2, max_time=600.0, random_state=0).fit(
        X, y
    )  # the model's own limit, where it is less
    assert max(LOG) == 60.0 and LOG[0] < 60.0
    LOG.clear()
    CrossTraining(wrap(max_time=60.0), n_subsets=2, random_state=0).fit(X, y)
    assert set(LOG) == {60.0}


def test_a_limit_that_is_reached_leaves_a_usable_model():
    X, y = moons(3000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = CrossTraining(
            SVC(C=1e6, gamma=100.0), subset_size=0.9, max_time=1e-3, random_state=0
        ).fit(X, y)
    assert model.status_.reason == "max_time" and np.isfinite(model.decision_function(X)).all()


def test_an_interrupted_subset_ends_the_fit():
    X, y = moons(100)
    with pytest.raises(KeyboardInterrupt):
        CrossTraining(Constant(1.0, "interrupted")).fit(X, y)


class Interrupted(SVC):
    """Ctrl-C comes while it trains, and it converges before it looks."""

    def _solved(self, *words):
        os.kill(os.getpid(), signal.SIGINT)
        return super()._solved(*words)


@pytest.mark.skipif(os.name == "nt", reason="there a signal ends the process")
def test_an_interrupt_is_not_lost_in_a_subset_that_converges():
    X, y = moons(100)
    assert Interrupted().fit(X, y).status_.converged
    with pytest.raises(KeyboardInterrupt):
        CrossTraining(Interrupted(), random_state=0).fit(X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimator": svm.SVR()},
        {"estimator": svm.OneClassSVM()},
        {"estimator": SVC},
        {"estimator": 3},
        {"n_subsets": 0},
        {"n_subsets": 2.5},
        {"subset_size": 0.0},
        {"subset_size": 1.5},
        {"subset_size": -3},
        {"subset_size": 1},
        {"subset_size": np.nan},
        {"balanced_subsets": "no"},
        {"held_out": 2},
        {"refit_intercept": "yes"},
        {"warm_start_dual": 3},
        {"max_time": 0.0},
        {"max_time": "long"},
        {"n_jobs": "all"},
        {"random_state": "a"},
    ],
    ids=str,
)
def test_parameters(wrong):
    X, y = moons(100)
    with pytest.raises(ValueError, match=f"The {next(iter(wrong))!r} parameter of CrossTraining"):
        CrossTraining(**wrong).fit(X, y)


def test_what_cannot_be():
    X, y = moons(100)
    with pytest.raises(ValueError, match=r"subset_size=101 is more than the 100 rows"):
        CrossTraining(subset_size=101).fit(X, y)
    with pytest.raises(
        ValueError, match=r"subset_size=100 is more than the 99 rows of positive weight"
    ):
        CrossTraining(subset_size=100).fit(X, y, np.arange(100) > 0)
    with pytest.raises(ValueError, match="class"):
        CrossTraining().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="positive weights belong to the same class: 1"):
        CrossTraining().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match=r"Unknown label type|continuous"):
        CrossTraining().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="NaN"):
        CrossTraining().fit(X * np.nan, y)
    with pytest.raises(ValueError, match="does not take it"):
        CrossTraining(Constant()).fit(X, y, np.arange(100) + 1.0)
    with pytest.raises(ValueError, match=r"warm_start_dual=True needs an SVC"):
        CrossTraining(LinearSVC(), warm_start_dual=True).fit(X, y)
    with pytest.raises(
        ValueError, match=r"max_time=5 needs an estimator that has.*Constant has none"
    ):
        CrossTraining(Constant(), max_time=5).fit(X, y)
    with pytest.raises(ValueError, match="square matrix"):
        CrossTraining(SVC(kernel="precomputed")).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        CrossTraining(Constant(np.nan)).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(100, 2\).*one value a row"):
        CrossTraining(Constant(columns=2)).fit(X, y)
    with pytest.raises(NotFittedError):
        CrossTraining().predict(X)
    broken = sp.csr_matrix(X)
    broken.indices[0] = 7
    with pytest.raises(ValueError, match="sparse matrix X is broken"):
        CrossTraining().fit(broken, y)


def test_weights_of_an_estimator_without_weights():
    X, y = moons(100)
    weight = np.where(np.arange(100) < 30, 0.0, 2.0)
    model = CrossTraining(Constant(), random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(model.pair_indices_[0], np.arange(30, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CrossTraining(Constant(columns=1)).fit(X, y).decision_function(X).shape == (100,)
