"""The data sets: where their files come from, how they are read, and what must come out.

``sha256`` of a file is the digest of its bytes as the server sends them. Where that is not known
but its numbers are, ``content`` is the digest of the rows and labels (``readers.content_digest``),
which no other way of writing or packing the same numbers changes. The sizes are checked for all;
where neither digest is known, a warning says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slimsvm.datasets import readers
from slimsvm.datasets.readers import Arrays, Reader


@dataclass(frozen=True)
class File:
    """A file of an official source: its name, its addresses, and its digest where that is known."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """A data set; without files, no official source has it.

    ``n_train`` counts all rows where the source has no split.
    """

    task: str
    n_train: int
    n_test: int
    n_features: int
    origin: str
    files: tuple[File, ...] = ()
    read: Reader | None = None
    content: str | None = None
    finish: Callable[[Arrays], Arrays] | None = None
    instead: str = ""


LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
MNIST = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


def _files(base: str, *names: str, sha256: tuple[str, ...] = ()) -> tuple[File, ...]:
    return tuple(
        File(name, (base + name,), sha256[i] if sha256 else None) for i, name in enumerate(names)
    )


def _of_libsvm(folder: str, *names: str, sha256: tuple[str, ...] = ()) -> tuple[File, ...]:
    return _files(LIBSVM + folder, *names, sha256=sha256)


def _mnist(name: str, sha256: str) -> File:
    return File(name, tuple(base + name for base in MNIST), sha256)


CATALOGUE: dict[str, Entry] = {
    "a9a": Entry(
        "binary",
        32_561,
        16_281,
        123,
        "Adult: does a person earn more than 50,000 dollars a year? UCI; 123 binary features by "
        "J. Platt; LIBSVM collection.",
        _of_libsvm(
            "binary/",
            "a9a",
            "a9a.t",
            sha256=(
                "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
                "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
            ),
        ),
        readers.libsvm(123, dense=False),
    ),
    "ijcnn1": Entry(
        "binary",
        49_990,
        91_701,
        22,
        "The first problem of the IJCNN 2001 challenge, as the winner transformed it; LIBSVM "
        "collection.",
        _of_libsvm("binary/", "ijcnn1.bz2", "ijcnn1.t.bz2"),
        readers.libsvm(22),
        content="1eaebee29caf473060f1a5dd348d0c7bc18d59f3f25539bf085c3b6b60b2c835",
    ),
    "mnist": Entry(
        "10 classes",
        60_000,
        10_000,
        784,
        "Handwritten digits of 28 x 28 pixels in [0, 1]. Y. LeCun, C. Cortes, C. Burges.",
        (
            _mnist(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            _mnist(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            _mnist(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _mnist(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        readers.idx,
        finish=readers.grey,
    ),
    "covtype": Entry(
        "binary",
        581_012,
        0,
        54,
        "Forest cover types: lodgepole pine against the rest. UCI. A fixed fifth of the rows is "
        "the test part; numeric columns in [0, 1].",
        (
            File(
                "covtype.data.gz",
                (UCI + "covtype/covtype.data.gz", "https://ndownloader.figshare.com/files/5976039"),
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
        readers.covtype,
        finish=readers.split_covtype,
    ),
    "rcv1": Entry(
        "binary",
        14_401,
        13_212,
        47_236,
        "Reuters news: topic CCAT against the rest. The five subsets of RCV1-v2 in the LIBSVM "
        "collection, every document once.",
        _of_libsvm(
            "multilabel/",
            *(
                f"rcv1subset_topics_{part}_{i}.svm.bz2"
                for part in ("train", "test")
                for i in range(1, 6)
            ),
        ),
        readers.rcv1,
    ),
    "20news": Entry(
        "20 classes",
        11_314,
        7_532,
        38_563,
        "20 Newsgroups, split by date; tf-idf of words.",
        instead=(
            "sklearn.datasets.fetch_20newsgroups_vectorized has the same documents with another "
            "vocabulary"
        ),
    ),
    "reuters": Entry(
        "binary",
        7_770,
        3_299,
        8_315,
        "Reuters-21578, the ModApte split: topic money-fx against the rest; tf-idf of words.",
        instead="the collection itself is at https://archive.ics.uci.edu/dataset/137",
    ),
    "dna": Entry(
        "3 classes",
        2_000,
        1_186,
        180,
        "Statlog: splice junctions in sequences of 60 bases, three bits each; LIBSVM collection.",
        _of_libsvm("multiclass/", "dna.scale", "dna.scale.t"),
        readers.libsvm(180),
        content="6ef9c4e8ec064248443e064291a941a2995d6e85f1232a3264a2de798f978241",
    ),
    "satimage": Entry(
        "6 classes",
        4_435,
        2_000,
        36,
        "Statlog: Landsat pixels with their neighbours, in [-1, 1]. UCI.",
        _files(
            UCI + "statlog/satimage/",
            "sat.trn",
            "sat.tst",
            sha256=(
                "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
                "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
            ),
        ),
        readers.statlog,
    ),
    "letter": Entry(
        "26 classes",
        15_000,
        5_000,
        16,
        "Statlog: 16 numbers that describe pictures of capital letters, in [-1, 1]; LIBSVM "
        "collection.",
        _of_libsvm("multiclass/", "letter.scale", "letter.scale.t"),
        readers.libsvm(16),
        content="6dc1aae4ba1ab74ae02914078027fefe85fea8623321e67941e6bfa9b0f5b6de",
    ),
    "shuttle": Entry(
        "7 classes",
        43_500,
        14_500,
        9,
        "Statlog: positions of radiators in the space shuttle, very unbalanced, in [-1, 1]; "
        "LIBSVM collection.",
        _of_libsvm(
            "multiclass/",
            "shuttle.scale",
            "shuttle.scale.t",
            sha256=(
                "f9f8ba4159949a451d11f625085c92065e72cce657e7df0633de3aa45ecbc9ba",
                "a26557facbc5ba52aa147c5477b4b099cab2c08f3f59fd120a47de46887fa58d",
            ),
        ),
        readers.libsvm(9),
    ),
    "protein": Entry(
        "3 classes",
        17_766,
        6_621,
        357,
        "Secondary structure of proteins; LIBSVM collection.",
        _of_libsvm("multiclass/", "protein.bz2", "protein.t.bz2"),
        readers.libsvm(357, dense=False),
    ),
    "protein_part": Entry(
        "3 classes",
        2_871,
        0,
        357,
        "The validation part of protein; LIBSVM collection.",
        _of_libsvm("multiclass/", "protein.val.bz2"),
        readers.libsvm(357, dense=False),
        content="34963e2a4c5ccfc53e84538fcf423f90b1d64e0b071937f7629352cf15c56993",
    ),
    "banana": Entry(
        "binary",
        400,
        4_900,
        2,
        "KEEL: points in banana-shaped clusters; a split of the usual sizes.",
        instead="slimsvm.datasets.banana draws rows of this kind",
    ),
    "waveform": Entry(
        "binary",
        400,
        4_600,
        21,
        "One realisation of the waves of Breiman et al., in two classes.",
        instead="slimsvm.datasets.waveform draws rows of this kind",
    ),
    "splice": Entry(
        "binary",
        1_000,
        2_175,
        60,
        "Splice junctions in sequences of 60 bases, numbered 1 to 4; LIBSVM collection.",
        _of_libsvm("binary/", "splice", "splice.t"),
        readers.libsvm(60),
        content="c693a3c20e4a392187d7c309a45dee7befd4a0ee5f9f43ca7c7924ac4c62716a",
    ),
    "cadata": Entry(
        "regression",
        20_640,
        0,
        8,
        "Prices of houses in California, by district. StatLib; LIBSVM collection.",
        _of_libsvm("regression/", "cadata"),
        readers.cadata,
    ),
    "abalone": Entry(
        "regression",
        4_177,
        0,
        8,
        "Age of abalones from measurements in [-1, 1]. UCI; LIBSVM collection.",
        _of_libsvm("regression/", "abalone_scale"),
        readers.libsvm(8, regression=True),
        content="4a4d8167bd23f50b770dbaf37878a2f6ea738bb0b58a189f44f03ec56098efcc",
    ),
    "cpusmall": Entry(
        "regression",
        8_192,
        0,
        12,
        "Share of time that a computer runs in user mode, from 12 counters. Delve; LIBSVM "
        "collection.",
        _of_libsvm("regression/", "cpusmall"),
        readers.libsvm(12, regression=True),
    ),
}
