"""slim-train and its kin: the letters, files and last lines of LIBSVM and SVM-light."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import (
    dump_svmlight_file,
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_blobs,
)

from slimsvm.cli import as_libsvm, as_svmlight, scaling

PROGRAMS = {
    "slim-train": as_libsvm.train,
    "slim-predict": as_libsvm.predict,
    "slim-grid": as_libsvm.grid,
    "slim-scale": scaling.scale,
    "slim-learn": as_svmlight.learn,
    "slim-classify": as_svmlight.classify,
}
real = pytest.mark.skipif(shutil.which("svm-train") is None, reason="svm-train is not installed")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run one of the programs in a folder of its own: exit code, output, complaints."""
    monkeypatch.chdir(tmp_path)

    def call(line):
        program, *words = line.split()
        monkeypatch.setattr(sys, "argv", [program, *words])
        with pytest.raises(SystemExit) as end:
            PROGRAMS[program]()
        said = capsys.readouterr()
        return end.value.code, said.out, said.err

    return call


def theirs(line):
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(name):
    """One of five sets, as LIBSVM's text."""
    if name == "blobs":
        X, y = make_blobs(300, 3, centers=4, cluster_std=3.0, random_state=0)
        y = np.array([7, -2, 30, 4])[y]
    else:
        loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
        loader = loaders.get(name, load_diabetes)
        X, y = loader(return_X_y=True)
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
        y = np.where(y, 1, -1) if name == "cancer" else y / (100.0 if name == "diabetes" else 1)
    dump_svmlight_file(np.round(X, 6), y, name, zero_based=False)


@real
@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("iris", ""),
        ("wine", "-t 0 -c 10"),
        ("cancer", "-s 1 -n 0.2 -e 1e-5"),
        ("blobs", "-t 1 -g 0.1 -r 1 -d 2 -w7 3 -w-2 0.5 -e 1e-5"),
        ("cancer", "-w1 2 -g 0.5 -h 0 -m 10"),
        ("diabetes", "-s 3 -p 0.2 -c 3 -e 1e-5"),
        ("diabetes", "-s 4 -n 0.3 -e 1e-5"),
    ],
)
def test_same_last_lines_and_models_both_ways(run, name, letters):
    write(name)
    theirs(f"svm-train -q {letters} {name} a.model")
    code, said, _ = run(f"slim-train {letters} {name} b.model")
    assert code == 0 and said.splitlines()[-1].startswith("Total nSV = ")
    expected = theirs(f"svm-predict {name} a.model a.out")
    _, ours, _ = run(f"slim-predict {name} b.model b.out")
    if name == "diabetes":  # both end within their tolerance
        numbers = [[float(w.split()[0]) for w in text.split("= ")[1:]] for text in (ours, expected)]
        assert np.allclose(*numbers, rtol=1e-4)
    else:
        assert ours == expected
    # each program reads what the other wrote
    assert theirs(f"svm-predict {name} b.model c.out") == ours
    assert run(f"slim-predict {name} a.model d.out")[1] == expected
    read = [np.loadtxt(f"{letter}.out") for letter in "abcd"]
    assert np.allclose(read[1], read[2], atol=1e-5) and np.allclose(read[0], read[3], atol=1e-5)


@real
def test_one_class_models_differ_at_most_on_their_border(run):
    """Free support vectors lie on it: there the sign is a matter of rounding in LIBSVM."""
    write("cancer")
    theirs("svm-train -q -s 2 -n 0.2 -e 1e-6 cancer a.model")
    run("slim-train -q -s 2 -n 0.2 -e 1e-6 cancer b.model")
    theirs("svm-predict cancer a.model a.out")
    run("slim-predict cancer b.model b.out")
    theirs("svm-predict cancer b.model c.out")
    a, b, c = (np.loadtxt(f"{out}.out") for out in "abc")
    assert np.mean(a != b) < 0.02 and np.mean(b != c) < 0.02


@real
def test_probabilities_go_both_ways(run):
    for name in ("iris", "cancer"):
        write(name)
        theirs(f"svm-train -q -b 1 {name} a.model")
        assert run(f"slim-train -q -b 1 {name} b.model")[:2] == (0, "")
        for model in ("a", "b"):
            expected = theirs(f"svm-predict -b 1 {name} {model}.model a.out")
            assert run(f"slim-predict -b 1 {name} {model}.model b.out")[1] == expected
            first = [Path(f"{out}.out").read_text().splitlines()[0] for out in "ab"]
            assert first[0].split() == first[1].split()
            values = [np.loadtxt(f"{out}.out", skiprows=1) for out in "ab"]
            # LIBSVM stops its iteration for coupled pairs early: at 0.005 / classes
            assert np.abs(values[0] - values[1]).max() < 0.01


@real
def test_scaled_files_are_equal_byte_by_byte(run):
    for name, letters in (("cancer", ""), ("blobs", "-l 0 -u 2"), ("diabetes", "-y 0 1")):
        write(name)
        expected = theirs(f"svm-scale {letters} -s a.range {name}")
        assert run(f"slim-scale {letters} -s b.range {name}")[1] == expected
        assert Path("a.range").read_text() == Path("b.range").read_text()
        assert run(f"slim-scale -r a.range {name}")[1] == theirs(f"svm-scale -r a.range {name}")


def test_cross_validation_and_grid(run):
    write("iris")
    code, said, _ = run("slim-train -v 5 iris")
    assert code == 0 and said.startswith("Cross Validation Accuracy = 9") and "%" in said
    write("diabetes")
    lines = run("slim-train -s 3 -v 3 diabetes")[1].splitlines()
    assert lines[0].startswith("Cross Validation Mean squared error = ")
    assert lines[1].startswith("Cross Validation Squared correlation coefficient = ")
    code, said, _ = run("slim-grid -log2c -1,1,2 -log2g 0,-2,-2 -v 3 -gnuplot null iris")
    C, gamma, rate = map(float, said.splitlines()[-1].split())
    kept = [line.split() for line in Path("iris.out").read_text().splitlines()]
    assert len(kept) == 4 and C in (0.5, 2.0) and gamma in (1.0, 0.25) and rate > 90
    assert max(float(words[-1].removeprefix("rate=")) for words in kept) == rate
    assert (
        run("slim-grid -log2c 1,1,1 -log2g null -out null iris")[1].splitlines()[-1][:4] == "2.0 "
    )


def test_the_letters_of_svm_light(run):
    write("cancer")
    for letters in (
        "-t 2 -g 1 -c 10",
        "-q 10 -n 4 -h 50 -e 0.01",
        "-b 0 -c 1",
        "-j 2 -c 1 -t 1 -d 2",
    ):
        assert run(f"slim-learn {letters} -v 0 cancer m")[:2] == (0, "")
        code, said, _ = run("slim-classify cancer m out")
        right = float(said.split("Accuracy on test set: ")[1].split("%")[0])
        assert code == 0 and right > 93
        values, y = np.loadtxt("out"), load_breast_cancer().target
        assert round(100 * np.mean((values > 0) == (y > 0)), 2) == right
    said = run("slim-learn -x 1 -a alphas cancer m")[1]
    assert "Leave-one-out estimate of the error: error=" in said
    assert np.loadtxt("alphas").shape == (569,)
    write("diabetes")
    assert run("slim-learn -z r -w 0.1 -c 1 -t 2 -v 0 diabetes m")[0] == 0


def test_rows_without_a_label_are_left_out_and_predicted(run):
    write("cancer")
    lines = Path("cancer").read_text().splitlines()
    hidden = ["0 " + line.split(" ", 1)[1] if k % 10 == 0 else line for k, line in enumerate(lines)]
    Path("some").write_text("\n".join(hidden) + "\n")
    code, _, complaint = run("slim-learn -v 0 -c 1 -l labels some m")
    assert code == 0 and "57 rows with label 0" in complaint
    assert len(Path("labels").read_text().splitlines()) == 57


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("slim-train -k 3 iris", "-k is no option of svm-train; there are -s, -t"),
        ("slim-train -t 7 iris", "-t 7: expected one of 0, 1, 2, 3, 4"),
        ("slim-train -c 0 iris", "-c 0: expected a number above 0"),
        ("slim-train -c", "-c needs a value"),
        ("slim-train -wx 3 iris", "after -w comes a label"),
        ("slim-train -s 3 -b 1 iris", "-b 1 is for classification"),
        ("slim-train nowhere", "nowhere: No such file"),
        ("slim-train iris no/where", "the folder for it does not exist"),
        ("slim-grid -c 3 iris", "-c of grid.py is not here: use -log2c"),
        ("slim-grid -log2c 1,2 iris", "expected begin,end,step"),
        ("slim-learn -p 0.5 iris m", "-p of svm_learn is not here: there is no transduction"),
        ("slim-learn iris m", "labels of classification are +1, -1 and 0"),
        ("slim-learn -z r -q 10 iris m", "the solver of regressions has no such knobs"),
        ("slim-classify iris iris", "iris, line 1"),
        ("slim-predict iris iris out", "iris, line 1"),
        ("slim-scale -r iris iris", "not a file that svm-scale -s"),
        ("slim-scale -l 1 -u 0 iris", "inconsistent lower/upper"),
    ],
)
def test_what_is_not_there_is_refused_by_name(run, tmp_path, line, words):
    write("iris")
    code, said, complaint = run(line)
    assert code == 1 and said == ""
    assert words in complaint and complaint.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["iris"]
