"""slim-train and its kin: the letters, files and last lines of LIBSVM and SVM-light."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import (
    dump_svmlight_file,
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_svmlight_file,
    load_wine,
    make_blobs,
)

from slimsvm.cli import as_grid, as_libsvm, as_svmlight, scaling

PROGRAMS = {
    "slim-train": as_libsvm.train,
    "slim-predict": as_libsvm.predict,
    "slim-grid": as_grid.grid,
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
    assert code == 0 and said.splitlines()[-1].startswith("nSV" if name == "diabetes" else "Total")
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
@pytest.mark.parametrize(
    ("labels", "order"),
    [("-1 1", "1 -1"), ("1 -1", "1 -1"), ("1 2", "1 2"), ("2 1", "2 1"), ("5 -3 9", "5 -3 9")],
)
def test_classes_have_the_order_of_the_real_programs(run, labels, order):
    """That of the file, but +1 before -1."""
    rng = np.random.default_rng(0)
    words = labels.split()
    X, y = rng.normal(size=(60, 2)), np.resize(words, 60)
    X[:, 0] += np.resize(np.arange(len(words)), 60)
    lines = [f"{label} 1:{a:.4f} 2:{b:.4f}" for label, (a, b) in zip(y, X, strict=True)]
    Path("data").write_text("\n".join(lines))  # the last line has no end
    theirs("svm-train -q -b 1 data a.model")
    assert run("slim-train -q -b 1 data b.model")[0] == 0
    for model in ("a", "b"):
        assert f"label {order}" in Path(f"{model}.model").read_text().splitlines()
        theirs(f"svm-predict -b 1 data {model}.model a.out")
        run(f"slim-predict -b 1 data {model}.model b.out")
        read = [Path(f"{out}.out").read_text().splitlines() for out in "ab"]
        assert read[0][0] == read[1][0] == f"labels {order}"
        values = [np.loadtxt(lines[1:]) for lines in read]
        assert np.abs(values[0][:, 1:] - values[1][:, 1:]).max() < 0.01


def test_what_is_said_of_a_fit(run):
    """The lines that scripts look for, for each pair of classes."""
    write("blobs")
    lines = run("slim-train -w7 2 blobs")[1].splitlines()
    heads = [line.split(" = ")[0] for line in lines]
    pair = ["optimization finished, #iter", "obj", "nSV"]
    other = ["optimization finished, #iter", "nu", "obj", "nSV"]
    classes = Path("blobs.model").read_text().split("label ")[1].split("\n")[0].split()
    pairs = [(a, b) for k, a in enumerate(classes) for b in classes[k + 1 :]]
    expected = [word for both in pairs for word in (pair if "7" in both else other)]
    assert heads == [*expected, "Total nSV"]
    rho = Path("blobs.model").read_text().split("rho ")[1].split("\n")[0].split()
    said = [float(line.split("rho = ")[1]) for line in lines if "rho = " in line]
    assert np.allclose(said, np.array(rho, float), atol=1e-6)


@real
@pytest.mark.parametrize("letters", ["-c 2", "-s 1 -n 0.2", "-s 2", "-s 3 -c 2", "-s 4 -n 0.3"])
def test_what_is_said_is_what_svm_train_says(run, letters):
    name = "diabetes" if letters[:4] in ("-s 3", "-s 4") else "cancer"
    write(name)
    expected = theirs(f"svm-train {letters} -e 1e-6 {name}").splitlines()
    said = run(f"slim-train {letters} -e 1e-6 {name}")[1].splitlines()
    expected = expected[next(k for k, line in enumerate(expected) if line[:3] == "opt") :]
    assert len(said) == len(expected)
    for ours, other in zip(said[1:], expected[1:], strict=True):  # the first has their steps
        mine, other = (dict(re.findall(r"(\w[\w ]*) = ([^ ,]+)", line)) for line in (ours, other))
        assert mine.keys() == other.keys()
        numbers = [[float(v) for v in found.values()] for found in (mine, other)]
        assert np.allclose(*numbers, rtol=1e-3)


@real
def test_probabilities_of_a_regression_and_of_one_class(run):
    write("diabetes")
    theirs("svm-train -q -s 3 -b 1 diabetes a.model")
    said = run("slim-train -s 3 -b 1 diabetes b.model")[1]
    assert "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= " in said
    for model in "ab":
        expected = theirs(f"svm-predict -b 1 diabetes {model}.model a.out").splitlines()
        ours = run(f"slim-predict -b 1 diabetes {model}.model b.out")[1].splitlines()
        assert ours[:2] == expected[:2] and ours[0].startswith("Prob. model for test data")
        assert np.allclose(*(np.loadtxt(f"{out}.out") for out in "ab"), atol=1e-5)
    scales = [float(Path(f"{m}.model").read_text().split("probA ")[1].split()[0]) for m in "ab"]
    assert abs(scales[0] / scales[1] - 1) < 0.1  # other folds
    write("cancer")
    run("slim-train -q -s 2 -b 1 -n 0.2 cancer c.model")
    marks = Path("c.model").read_text().split("prob_density_marks ")[1].split("\n")[0].split()
    assert len(marks) == 10 and sorted(map(float, marks)) == list(map(float, marks))
    assert run("slim-predict -q -b 1 cancer c.model c.out")[0] == 0
    lines = Path("c.out").read_text().splitlines()
    assert lines[0] == "label normal outlier"
    label, normal, outlier = np.array([line.split() for line in lines[1:]], float).T
    assert np.allclose(normal + outlier, 1.0)
    assert np.all(label[normal > 0.5] == 1) and np.all(label[normal < 0.5] == -1)


def test_marks_of_a_density():
    """As svm_one_class_probability places them, by its own steps."""
    from slimsvm.cli.after_libsvm import density_marks, of_density

    values = np.sort(np.random.default_rng(3).normal(0.4, 1.0, 57))
    n_negative = int(np.sum(values < 0))
    edges = [values[i * n_negative // 5] for i in range(5)] + [0.0]
    edges += [values[n_negative - 1 + i * (57 - n_negative) // 5] for i in range(1, 6)]
    marks = density_marks(values)
    assert np.allclose(marks, [(a + b) / 2 for a, b in pairwise(edges)])
    asked = np.array([marks[0] - 1, marks[0], marks[4], (marks[4] + marks[5]) / 2, marks[9] + 1])
    assert np.allclose(of_density(asked, marks), [0.001, 0.1, 0.5, 0.5, 0.999])


@pytest.mark.parametrize("letters", ["", "-s 1 -t 0", "-b 1 -t 1 -g 2", "-t 3 -w4 2"])
def test_a_file_with_one_label(run, letters):
    """A part of a file may have one only: the model always says it, as that of svm-train."""
    Path("alike").write_text("4 1:1\n4 1:2 2:1\n4 1:3\n")
    Path("others").write_text("4 1:1\n5 3:2\n4 1:3\n")
    code, said, complaint = run(f"slim-train {letters} alike m")
    assert (code, said) == (0, "Total nSV = 0\n") and "training data in only one class" in complaint
    assert run("slim-train -v 2 alike")[1] == "Cross Validation Accuracy = 100%\n"
    probable = letters.split(" -t")[0] if "-b" in letters else ""
    code, said, _ = run(f"slim-predict {probable} others m out")
    assert code == 0 and "Accuracy = 66.6667% (2/3) (classification)\n" in said
    rows = ["labels 4", *["4 1"] * 3] if probable else ["4"] * 3
    assert Path("out").read_text().splitlines() == rows
    if shutil.which("svm-train"):
        theirs(f"svm-train {letters} alike m2")
        own = [[line.split() for line in Path(m).read_text().splitlines()] for m in ("m", "m2")]
        assert own[0] == own[1]
        assert theirs(f"svm-predict {probable} others m out2") == said
        assert Path("out2").read_text().split() == Path("out").read_text().split()


def test_a_tube_that_nothing_lies_on(run):
    """All rows have one target: epsilon was said to be nan."""
    Path("flat").write_text("4 1:1\n4 1:2 2:1\n4 1:3\n")
    assert "epsilon = 0.000000\n" in run("slim-train -s 4 flat m")[1]


@pytest.mark.parametrize("first", [0, 1])
def test_indices_may_begin_with_zero(run, first):
    """scikit-learn writes them so by default, and svm-train takes them."""
    X, y = make_blobs(80, 3, centers=2, cluster_std=4.0, random_state=1)
    dump_svmlight_file(np.round(X, 3), y, "data", zero_based=first == 0)
    assert run("slim-train -q -c 2 data m")[0] == 0
    width = 3 if first else 2  # LIBSVM's default divides by the largest index
    lines = Path("m").read_text().splitlines()
    assert float(lines[2].split()[1]) == pytest.approx(1 / width)
    assert lines[-1].split()[1].startswith(f"{first}:")
    expected = np.mean(load_model("m", first).predict(np.round(X, 3)) == y)
    said = run("slim-predict data m out")[1]
    assert f"({round(80 * expected)}/80)" in said
    if shutil.which("svm-train"):
        assert theirs("svm-predict data m out2") == said
        theirs("svm-train -q -c 2 data m2")
        assert run("slim-predict data m2 out3")[1] == theirs("svm-predict data m2 out4")
        scaled = subprocess.run(["svm-scale", "-l", "0", "data"], capture_output=True, text=True)
        assert run("slim-scale -l 0 data") == (0, scaled.stdout, scaled.stderr)


def load_model(path, first):
    from slimsvm.persistence import load_libsvm

    return load_libsvm(path, zero_based=first == 0)


def test_kernel_values_of_some_rows_in_any_order(run):
    """The serial number of a row says which column is its own."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, 1, -1)
    K = X @ X.T

    def put(name, rows):
        lines = [
            f"{y[i]} 0:{i + 1} " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(K[i]))
            for i in rows
        ]
        Path(name).write_text("\n".join(lines) + "\n")

    put("all", range(40))
    put("some", rng.permutation(40)[:30])
    for letters in ("", "-s 3 -e 1e-6"):
        assert run(f"slim-train -q -t 4 {letters} some m")[0] == 0
        said = run("slim-predict all m out")[1]
        assert len(Path("out").read_text().splitlines()) == 40
        if shutil.which("svm-train"):
            assert theirs("svm-predict all m out2") == said
            theirs(f"svm-train -q -t 4 {letters} some m2")
            expected = theirs("svm-predict all m2 out3")
            if not letters:
                assert said == expected
            else:
                assert np.allclose(np.loadtxt("out"), np.loadtxt("out3"), atol=1e-3)
    assert "Cross Validation Accuracy" in run("slim-train -t 4 -v 3 some")[1]


def test_thirty_classes_have_a_long_head(run):
    """Longer than what was once read of it: their order and columns come from it."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat(np.arange(30) * 3 - 20, 4))
    rows = rng.normal(size=(120, 2)) + labels[:, None]
    lines = [f"{c} 1:{a:.3f} 2:{b:.3f}" for c, (a, b) in zip(labels, rows, strict=True)]
    Path("many").write_text("\n".join(lines) + "\n")
    assert run("slim-train -q -b 1 many m")[0] == 0
    assert run("slim-predict -q -b 1 many m out")[0] == 0
    in_order = list(dict.fromkeys(labels.tolist()))
    first, *rest = Path("out").read_text().splitlines()
    assert first == "labels " + " ".join(map(str, in_order))
    for line in rest[:20]:
        label, *p = line.split()
        assert in_order[int(np.argmax(np.array(p, float)))] == int(label)


def test_other_words_of_scripts(run):
    write("cancer")
    assert run("slim-train -q -cost 3 cancer a")[0] == 0  # only the first letter counts
    assert run("slim-train -q -c 3 cancer b")[0] == 0
    assert Path("a").read_text() == Path("b").read_text()
    assert run("slim-train -q cancer /dev/null")[0] == 0
    assert run("slim-scale -s /dev/null cancer")[0] == 0
    Path("tiny").write_text("1 1:1\n1 1:2\n2 1:9\n")  # without the last there is one label
    assert run("slim-train -v 3 tiny")[1] == "Cross Validation Accuracy = 66.6667%\n"
    code, _, complaint = run("slim-train -v 2 -q -w1 2 -w8 3 cancer")
    assert code == 0 and complaint == "WARNING: class label 8 specified in weight is not found\n"


def test_a_search_goes_on_and_is_drawn(run):
    pytest.importorskip("matplotlib")
    write("iris")
    letters = "-log2g 0,-2,-2 -v 3 -w1 2 -svmtrain ./svm-train"
    first = run(f"slim-grid -log2c -1,1,2 {letters} iris")[1].splitlines()
    assert all(line.startswith("[local] ") for line in first[:-1]) and len(first) == 5
    again = run(f"slim-grid -log2c -1,3,2 {letters} -resume -png grid.png iris")[1].splitlines()
    assert [line.split()[0] for line in again[:-1]] == ["[resumed]"] * 4 + ["[local]"] * 2
    assert len(Path("iris.out").read_text().splitlines()) == 6
    assert Path("grid.png").read_bytes().startswith(b"\x89PNG")
    last = run(f"slim-grid -log2c -1,3,2 {letters} -resume iris.out iris")[1].splitlines()
    assert last[-1] == again[-1]
    Path("odd").write_text("log2c=x log2g=1 rate=3\n")
    assert "is no line of grid.py" in run(f"slim-grid {letters} -resume odd iris")[2]


def test_points_are_tried_in_the_order_of_grid_py(run):
    """Of equal rates the first one wins, which is in the middle of the grid."""
    expected = [(3, 1), (2, 1), (3, 0), (2, 0), (5, 1), (5, 0), (1, 1), (1, 0), (3, 2), (2, 2)]
    found = as_grid._in_turn([1, 2, 3, 4, 5], [0, 1, 2])
    assert found[:10] == expected and len(set(found)) == len(found) == 15
    assert as_grid._in_turn([None], [3, 1]) == [(None, 1), (None, 3)]


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


def test_what_svm_light_does_without_being_asked(run):
    """The name of the model, its C, and no accuracy where labels are numbers."""
    write("cancer")
    code, said, _ = run("slim-learn cancer")
    assert code == 0 and Path("svm_model").exists()
    rows = load_svmlight_file("cancer")[0].toarray()
    C = 1 / np.mean(np.linalg.norm(rows, axis=1)) ** 2
    assert f"Setting default regularization parameter C={C:.4f}\n" in said
    to_zero = np.sqrt(2 - 2 * np.exp(-0.5 * np.sum(rows**2, axis=1)))
    said = run("slim-learn -t 2 -g 0.5 cancer m")[1]
    assert f"Setting default regularization parameter C={1 / np.mean(to_zero) ** 2:.4f}\n" in said
    assert "|x|=1.00000\n" in said  # the root of k(x, x)
    assert run("slim-classify -v 1 -f 0 cancer m out")[1].splitlines()[1].startswith("Accuracy")
    pairs = [line.split() for line in Path("out").read_text().splitlines()]
    assert all(not first.startswith("-") and second.startswith("-") for first, second in pairs)
    assert {first.split(":")[1] for first, _ in pairs} == {"+1", "-1"}
    write("diabetes")
    run("slim-learn -v 0 -z r -c 1 diabetes m")
    said = run("slim-classify diabetes m out")[1]
    assert "support vectors read" in said and "Accuracy" not in said


def test_what_svm_learn_says_of_a_fit(run):
    """The numbers are those of svm_learn 6.02 for this file, whose tolerance is 0.001."""
    write("cancer")
    Path("c").write_text("".join(Path("cancer").read_text().splitlines(True)[:400]))
    said = run("slim-learn c m")[1]
    assert "Optimization finished (10 misclassified, maxdiff=0.0000" in said
    assert "\nNumber of SV: 94 (including 87 at upper bound)\nL1 loss: loss=47.2583" in said
    assert (
        "|w|=4.2193" in said
        and "|x|=3.38592\nEstimated VCdim of classifier: VCdim<=105.604" in said
    )
    assert said.splitlines()[-4:] == [
        "XiAlpha-estimate of the error: error<=23.25% (rho=1.00,depth=0)",
        "XiAlpha-estimate of the recall: recall=>79.30% (rho=1.00,depth=0)",
        "XiAlpha-estimate of the precision: precision=>79.65% (rho=1.00,depth=0)",
        "Writing model file...done",
    ]
    said = run("slim-learn -t 2 -c 10 -g 1 -j 2 -o 2 -x 1 c m")[1]
    assert "error<=12.50% (rho=2.00,depth=0)\n" in said and "recall=>89.43% (rho=2.00" in said
    estimates = [line.split("=")[1] for line in said.splitlines() if line[:9] == "Leave-one"]
    assert estimates == ["3.25%", "98.24%", "96.12%"]  # svm_learn leaves out 44 rows for them
    write("diabetes")
    Path("d").write_text("".join(Path("diabetes").read_text().splitlines(True)[:300]))
    said = run("slim-learn -z r -t 2 -g 0.5 -c 1 d m")[1]
    assert "Optimization finished (maxdiff=0.0" in said and "XiAlpha" not in said
    assert "L1 loss: loss=92.7" in said and "|w|=3.994" in said and "|x|=1.00000" in said


def test_rows_without_a_label_are_left_out_and_predicted(run):
    write("cancer")
    lines = Path("cancer").read_text().splitlines()
    hidden = ["0 " + line.split(" ", 1)[1] if k % 10 == 0 else line for k, line in enumerate(lines)]
    Path("some").write_text("\n".join(hidden) + "\n")
    code, _, complaint = run("slim-learn -v 0 -c 1 -l labels some m")
    assert code == 0 and "57 rows with label 0" in complaint
    assert len(Path("labels").read_text().splitlines()) == 57
    assert run("slim-learn -v 0 -c 1 -l labels cancer m")[0] == 0  # no row is without one
    assert Path("labels").read_text() == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("slim-train -k 3 iris", "-k is no option of svm-train; there are -s, -t"),
        ("slim-train -t 7 iris", "-t 7: expected one of 0, 1, 2, 3, 4"),
        ("slim-train -c 0 iris", "-c 0: expected a number above 0"),
        ("slim-train -c", "-c needs a value"),
        ("slim-train -wx 3 iris", "after -w comes a label"),
        ("slim-train -s 1 -n 0.9 some", "specified nu is infeasible: at most 0.666667"),
        ("slim-train far", "the label 1e+300 is beyond LIBSVM's integers of 32 bits; -s 3 is"),
        ("slim-train wide", "wide, line 1: feature 4000000000, but there are only 2147483647"),
        ("slim-train -w1 0 some", "some: fewer than two labels have a weight (-wi) above 0"),
        ("slim-train -t 4 iris", "begins with 0:serial_number"),
        ("slim-train nowhere", "nowhere: No such file"),
        ("slim-train iris no/where", "the folder for it does not exist"),
        ("slim-grid -c 3 iris", "-c of grid.py is not here: use -log2c"),
        ("slim-grid -log2c 1,2 iris", "expected begin,end,step"),
        ("slim-grid -log2c 0,nan,1 iris", "expected powers of two between -300 and 300"),
        ("slim-grid -log2g 0,1,1e-9 iris", "more than 1,000 values"),
        ("slim-predict iris nothing out", "label is '99999999999'"),
        ("slim-scale -s no/where iris", "the folder for it does not exist"),
        ("slim-scale -r odd iris", "odd: not a file that svm-scale -s or slim-scale -s wrote"),
        ("slim-scale -r bytes iris", "bytes: not a file that svm-scale -s or slim-scale -s wrote"),
        ("slim-learn -p 0.5 iris m", "-p of svm_learn is not here: there is no transduction"),
        ("slim-learn -a no/where iris m", "the folder for it does not exist"),
        ("slim-learn -k 2 iris m", "-k 2 of svm_learn is not here: the extended XiAlpha"),
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
    Path("some").write_text("1 1:1\n2 1:2\n1 1:3\n")
    Path("far").write_text("1e300 1:1\n2 1:2\n-1e300 1:3\n")
    Path("wide").write_text("1 1:1 4000000000:2\n2 1:2\n")
    Path("odd").write_text("x\n1\n1 0 1\n")  # one limit where there should be two
    Path("bytes").write_bytes(b"\x80\xff\n")
    head = "svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 99999999999\n"
    Path("nothing").write_text(head + "nr_sv 0\nSV\n")
    there = sorted(path.name for path in tmp_path.iterdir())
    code, said, complaint = run(line)
    assert code == 1 and said == ""
    assert words in complaint and complaint.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == there
