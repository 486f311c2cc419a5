"""Model files of CrossTraining: an estimator that holds estimators."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from tests.pairs import every_pair
from tests.persistence.models import data
from tests.persistence.test_native import assert_same, edit_header, refused, round_trip

from slimsvm import SVC, CrossTraining, LinearSVC, NuSVC, SparseSVC, load, save
from slimsvm.cli.program import program
from slimsvm.declarations import attributes_of
from slimsvm.persistence import save_libsvm, save_svmlight


def fitted(machine=None, n_classes=3, sparse=False, precomputed=False, labels=None, **parameters):
    X, y, _, new = data(n_classes, sparse, precomputed)
    y = y if labels is None else np.array(labels)[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CrossTraining(machine, subset_size=20, random_state=0, **parameters).fit(X, y), new


MODELS = {
    "default": None,
    "SVC": SVC(kernel="poly", C=3.0),
    "NuSVC": NuSVC(nu=0.1),
    "SparseSVC": SparseSVC(4),
    "LinearSVC": LinearSVC(loss="hinge"),
    "CrossTraining": CrossTraining(SVC(), 2, 10),
}


@every_pair(machine=MODELS, n_classes=[2, 4], sparse=[False, True])
def test_it_comes_back_bit_for_bit(machine, n_classes, sparse, tmp_path):
    model, new = fitted(machine, n_classes, sparse, refit_intercept=True)
    again = round_trip(model, tmp_path)
    assert type(again) is CrossTraining
    assert repr(again) == repr(model) and set(again.get_params()) == set(model.get_params())
    for name in attributes_of(model):
        if name == "kept_indices_":
            for one, other in zip(model.kept_indices_, again.kept_indices_, strict=True):
                assert_same(one, other, name)
        elif name != "estimators_":
            assert_same(getattr(model, name), getattr(again, name), name)
    assert again.status_ == model.status_ and again.certificate_ == model.certificate_
    assert_same(model.decision_function(new), again.decision_function(new))
    assert_same(model.predict(new), again.predict(new))
    assert [type(m) for m in again.estimators_] == [type(m) for m in model.estimators_]
    save(again, tmp_path / "twice.slim")
    assert (tmp_path / "twice.slim").read_bytes() == (tmp_path / "model.slim").read_bytes()


def test_labels_names_and_kernel_values(tmp_path):
    model, new = fitted(labels=("a", "bb", "c"))
    assert round_trip(model, tmp_path).predict(new).tolist() == model.predict(new).tolist()
    model, new = fitted(SVC(kernel="precomputed"), precomputed=True)
    assert_same(round_trip(model, tmp_path).decision_function(new), model.decision_function(new))
    pd = pytest.importorskip("pandas")
    X, y, _, new = data(2)
    names = [f"f{i}" for i in range(X.shape[1])]
    model = CrossTraining(random_state=0).fit(pd.DataFrame(X, columns=names), y)
    again = round_trip(model, tmp_path)
    assert again.feature_names_in_.tolist() == names
    assert_same(
        again.predict(pd.DataFrame(new, columns=names)),
        model.predict(pd.DataFrame(new, columns=names)),
    )


def test_what_the_template_learned_is_not_written(tmp_path):
    X, y, _, _ = data(2)
    model, _ = fitted(SVC(kernel="linear").fit(X, y), 2)
    assert not hasattr(round_trip(model, tmp_path).estimator, "support_")


def test_what_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(CrossTraining(), tmp_path / "model.slim")
    with pytest.raises(ValueError, match=r"got an object of class .*LogisticRegression.*joblib"):
        save(fitted(LogisticRegression())[0], tmp_path / "model.slim")
    with pytest.raises(ValueError, match="Python function"):
        save(fitted(SVC(kernel=lambda A, B: A @ B.T))[0], tmp_path / "model.slim")
    for write in (save_libsvm, save_svmlight):
        with pytest.raises(
            ValueError, match=r"holds one model, a CrossTraining one for each pair.*estimators_"
        ):
            write(fitted(None, 2, labels=(-1, 1))[0], tmp_path / "model.txt")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda fitted: fitted["estimators_"].pop(), "estimators_ is not a list of 3"),
        (
            lambda fitted: fitted["estimators_"].reverse(),
            r"estimators_\[0\] is not for the classes",
        ),
        (
            lambda fitted: fitted["estimators_"][1].update(fitted=None),
            r"estimators_\[1\] is not a fitted classifier",
        ),
        (
            lambda fitted: fitted["estimators_"][1].update({"class": "os.system"}),
            "unknown class 'os.system'",
        ),
        (lambda fitted: fitted["estimators_"][1]["parameters"].update(x=1), "no parameter 'x'"),
        (lambda fitted: fitted["estimators_"][1].pop("fitted"), "makes no sense"),
        (lambda fitted: fitted["estimators_"][2]["fitted"].update(n_features_in_=3), "shape"),
        (
            lambda fitted: fitted.update(n_features_in_=3),
            r"estimators_\[0\] has 7 features, expected 3",
        ),
        (lambda fitted: fitted.update(shifts_=[0.0]), "shifts_"),
        (lambda fitted: fitted.update(n_noise_=3), "n_noise_"),
        (lambda fitted: fitted.update(balance_after_=fitted["shifts_"]), "balance_after_"),
        (lambda fitted: fitted.update(pairs_=fitted["classes_"]), "pairs_"),
        (lambda fitted: fitted.update(kept_indices_=[None] * 3), r"kept_indices_\[0\]"),
        (lambda fitted: fitted.pop("estimators_"), "'estimators_' is missing"),
    ],
)
def test_files_that_were_tampered_with(change, match, tmp_path):
    save(fitted()[0], tmp_path / "model.slim")
    edit_header(tmp_path / "model.slim", lambda header: change(header["fitted"]) and None)
    refused(tmp_path / "model.slim", match)


def test_columns_of_kernel_values_that_are_not_there(tmp_path):
    model, _ = fitted(SVC(kernel="precomputed"), precomputed=True)
    model.kept_indices_[0] = model.kept_indices_[0] + 1000
    save(model, tmp_path / "model.slim")
    refused(tmp_path / "model.slim", r"kept_indices_\[0\] points outside")


@pytest.mark.parametrize(
    "machine", [None, SparseSVC(4), LinearSVC()], ids=["SVC", "SparseSVC", "LinearSVC"]
)
def test_on_the_command_line(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, new = fitted(machine)
    save(model, "model.slim")
    told = CliRunner().invoke(program, ["info", "model.slim"])
    assert told.exit_code == 0 and "CrossTraining" in told.output, told.output
    assert f"{model.n_kept_.sum()} kept, {model.n_noise_.sum()} noise" in told.output
    np.savez("new.npz", X=new.toarray() if sp.issparse(new) else new)
    assert (
        CliRunner().invoke(program, ["predict", "new.npz", "model.slim", "out.txt"]).exit_code == 0
    )
    np.testing.assert_array_equal(np.loadtxt("out.txt"), load("model.slim").predict(new))
