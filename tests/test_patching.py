"""scikit-learn's names mean our classes under the patch, wherever they are, and only then."""

import os
import pickle
import subprocess
import sys
import time
import warnings
from types import ModuleType

import numpy as np
import pytest
import sklearn
import sklearn.svm
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as IMPORTED_BEFORE
from sklearn.svm import _classes as theirs

import slimsvm
from slimsvm import patching
from slimsvm.__main__ import run_script

X, y = make_classification(80, 4, random_state=0)


def is_ours(estimator):
    return isinstance(estimator, patching.REPLACEMENTS["SVC"])


def test_every_reference_is_reached_and_taken_back():
    in_function, in_list = sklearn.svm.SVC, [sklearn.svm.SVC]
    made_before = sklearn.svm.SVC(C=3.0)
    with slimsvm.patch_sklearn():
        assert IMPORTED_BEFORE is sklearn.svm.SVC is patching.REPLACEMENTS["SVC"]
        for kind in (sklearn.svm.SVC, IMPORTED_BEFORE, in_function, in_list[0]):
            model = kind(C=2.0).fit(X, y)
            assert is_ours(model) and isinstance(model, slimsvm.SVC) and model.C == 2.0
            assert isinstance(model, kind) and isinstance(model, theirs.SVC)
            assert model.certificate_.holds
        assert is_ours(clone(made_before)) and clone(made_before).C == 3.0
        found = GridSearchCV(make_pipeline(StandardScaler(), in_function()), {"svc__C": [1, 10]})
        assert is_ours(found.fit(X, y).best_estimator_[-1])
    assert IMPORTED_BEFORE is sklearn.svm.SVC is in_function is theirs.SVC
    assert type(in_function()) is theirs.SVC and type(clone(made_before)) is theirs.SVC


def test_names_of_our_own_package_stay():
    with slimsvm.patch_sklearn():
        assert type(slimsvm.SVC()) is slimsvm.SVC
    assert type(slimsvm.SVC()) is slimsvm.SVC


def test_a_subclass_of_theirs_stays_theirs():
    class Own(theirs.SVC):
        pass

    with slimsvm.patch_sklearn():
        assert not is_ours(Own().fit(X, y)) and isinstance(Own(), Own)


@pytest.mark.parametrize("how", ["pickle", "file"])
def test_what_was_kept_under_the_patch_works_without_it(how, tmp_path):
    with slimsvm.patch_sklearn():
        model = sklearn.svm.SVC().fit(X, y)
        plain = pickle.dumps(theirs.SVC.__new__(theirs.SVC))  # theirs can still be pickled
        kept = pickle.dumps(model)
        slimsvm.save(model, tmp_path / "model.slim")
    again = pickle.loads(kept) if how == "pickle" else slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert type(pickle.loads(plain)) is theirs.SVC


def kind_made_in_a_worker(i):
    return sklearn.svm.SVC().fit(X, y).__class__.__module__


def test_workers_are_reached_while_it_lasts():
    with slimsvm.patch_sklearn():
        inside = Parallel(n_jobs=2)(delayed(kind_made_in_a_worker)(i) for i in range(2))
    outside = Parallel(n_jobs=2)(delayed(kind_made_in_a_worker)(i) for i in range(2))
    assert set(inside) == {"slimsvm.patching"} and set(outside) == {"sklearn.svm._classes"}


def test_a_worker_looks_again_only_at_modules_that_have_changed(monkeypatch):
    """9,000 fits of a millisecond took 20 s longer than they: each looked at all names of all."""
    early, late = ModuleType("early_module"), ModuleType("late_module")
    monkeypatch.setitem(sys.modules, "early_module", early)
    with patching._applied():
        pass
    early.found = late.found = sklearn.svm.SVC
    monkeypatch.setitem(sys.modules, "late_module", late)
    for _ in range(2):
        with patching._applied():
            assert early.found is late.found is sklearn.svm.SVC is patching.REPLACEMENTS["SVC"]
            late.inside = sklearn.svm.SVC
        assert early.found is late.found is late.inside is sklearn.svm.SVC is theirs.SVC

    def seconds(patch):
        since = time.process_time()
        with patch():
            pass
        return time.process_time() - since

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick = min(seconds(patching._applied) for _ in range(5))
        assert quick < min(seconds(slimsvm.patch_sklearn) for _ in range(5)) / 3


def test_what_ours_cannot_do_is_left_to_theirs_with_a_reason():
    with slimsvm.patch_sklearn() as patch:
        with pytest.warns(UserWarning, match="SVC is left to scikit-learn: C=1e\\+120"):
            model = sklearn.svm.SVC(C=1e120, max_iter=50).fit(X, y)
        assert type(model) is theirs.SVC and model.predict(X).shape == y.shape
        assert is_ours(clone(model))
        sklearn.svm.SVC().fit(X, y).predict(X)
    words = patch.profile.in_words()
    assert "SVC.fit by scikit-learn: 1 x" in words and "SVC.predict" in words


def test_twice_nested_and_nothing_to_take_back():
    with slimsvm.patch_sklearn():
        with pytest.warns(UserWarning, match="patched already"), slimsvm.patch_sklearn():
            pass
        assert is_ours(sklearn.svm.SVC())  # the inner end leaves the outer patch
    assert not is_ours(sklearn.svm.SVC())
    with pytest.warns(UserWarning, match="not patched"):
        slimsvm.unpatch_sklearn()
    slimsvm.patch_sklearn()
    slimsvm.unpatch_sklearn()
    assert not is_ours(sklearn.svm.SVC())


def test_an_older_scikit_learn_is_refused(monkeypatch):
    monkeypatch.setattr(sklearn, "__version__", "1.8.2")
    with pytest.raises(RuntimeError, match=r"needs scikit-learn 1.9 or newer.*this is 1\.8\.2"):
        slimsvm.patch_sklearn()
    assert sklearn.svm.SVC is theirs.SVC


def test_an_error_inside_takes_the_patch_back():
    with pytest.raises(ZeroDivisionError), slimsvm.patch_sklearn():
        raise ZeroDivisionError
    assert sklearn.svm.SVC is theirs.SVC


SCRIPT = """
import sys
from sklearn.svm import SVC
from sklearn.datasets import load_iris
model = SVC().fit(*load_iris(return_X_y=True))
print(sys.argv[1:], type(model).__module__, __name__)
"""


def test_a_script_from_the_command_line(tmp_path, monkeypatch, capsys):
    """In a process of its own, and other words in this one."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "slimsvm", "--profile", "script.py", "a"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ,
    )
    assert done.stdout.split("\n")[0] == "['a'] slimsvm.patching __main__", done.stderr
    assert "SVC.fit" in done.stderr
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["slimsvm"])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    run_script(["script.py", "a"])
    said = capsys.readouterr()
    assert said.out.split("\n")[0] == "['a'] slimsvm.patching __main__" and said.err == ""
    with pytest.raises(SystemExit, match=r"no file 'none\.py'"):
        run_script(["none.py"])
    assert sklearn.svm.SVC is theirs.SVC


def test_parameters_are_those_of_scikit_learn():
    """Under the patch everything that scikit-learn's class takes is taken, with its defaults."""
    for name, ours in patching.REPLACEMENTS.items():
        expected, found = getattr(theirs, name)().get_params(), ours().get_params()
        assert {k: found.get(k, "missing") for k in expected} == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs.SVC().fit(X, y)
