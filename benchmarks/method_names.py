"""What methods of the stored results are called on the page, and which of them it shows first."""

from __future__ import annotations

# of the words of a cell's key; what is not listed is shown as it is
METHODS = {
    # slimsvm
    "refined": "SparseSVC by Newton",
    "refined, one size": "SparseSVC by Newton, one size",
    "cpsp": "cutting planes (CPSP)",
    "cpsp, one size": "cutting planes (CPSP), one size",
    "cpsp_rows": "CPSP with rows as vectors",
    "nystrom": "random rows, hinge loss",
    "sparse_svc": "SparseSVC by Newton (earlier)",
    "greedy": "greedy rows",
    "cholesky": "pivoted Cholesky rows",
    "incomplete_cholesky": "incomplete Cholesky",
    "icf": "LowRankSVC",
    "lasvm": "OnlineSVC (LASVM)",
    "lasvm_active": "LASVM, active",
    "lasvm_budget": "LASVM with a budget",
    "cvm": "CoreVectorSVC (CVM)",
    "cvm_core": "CVM, small core set",
    "bvm": "CoreVectorSVC (BVM)",
    "bvm_pulls": "BVM, few vectors",
    "linear": "LinearSVC",
    "rsvm_smooth": "RSVM, smooth Newton",
    "rsvm_least_squares": "RSVM, least squares",
    "smooth": "RSVM, smooth Newton",
    "least_squares": "RSVM, least squares",
    "lagrangian": "RSVM, Lagrangian",
    "decomposition": "RSVM, decomposition",
    "common_smooth": "RSVM, one subset, smooth",
    "common_lagrangian": "RSVM, one subset, Lagrangian",
    "icf_pivoted": "incomplete Cholesky, pivots",
    "icf_threshold": "incomplete Cholesky, threshold",
    "icf_retrain": "incomplete Cholesky, retrained",
    "icf_intercept": "incomplete Cholesky, intercept",
    "libsvm_q": "decomposition as LIBSVM, large q",
    "base": "SVC (earlier version)",
    "mixed": "stream, rows mixed",
    "turned": "stream whose labels turn",
    "by_class": "stream, class by class",
    "float": "SparseSVC as C, float32",
    "int8": "SparseSVC as C, int8",
    # others
    "boosted": "gradient boosting",
    "gradient_boosting": "gradient boosting",
    "nystroem_linear": "Nystroem + LinearSVC",
    "nystroem_sgd": "Nystroem + SGD",
    "sklearn_nystroem": "Nystroem + LinearSVC",
    "sklearn_fourier": "random Fourier + LinearSVC",
}
PEERS = {
    "slimsvm": "slimsvm SVC",
    "sklearn": "scikit-learn SVC",
    "intelex": "scikit-learn-intelex",
    "libsvm": "LIBSVM",
    "thundersvm": "ThunderSVM",
}
EXACT, SPARSE = "SVC (exact)", "SparseSVC"
# Files whose exact model speaks for all: measured last, or with the others of the page.
EXACT_FROM = ("sparse", "peers", "cpsp", "rivals", "rsvm", "structural", "streams")
# Shown before others are switched on, as far as a set has them; the best scores fill what is left.
FIRST = (
    EXACT,
    SPARSE,
    "scikit-learn SVC",
    "Nystroem + LinearSVC",
    "gradient boosting",
    "cutting planes (CPSP)",
    "LIBSVM",
    "SparseSVC by Newton",
)


def shown_name(words: list[str]) -> str:
    """The name of the method of a cell, from the words of its key behind the set."""
    if words and words[0] in PEERS:
        rest = [word for word in words[1:] if word]
        return PEERS[words[0]] + (f" ({', '.join(rest)})" if rest else "")
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name.startswith("published_"):
        name, rest = name.removeprefix("published_"), [*rest, "as published"]
    found = METHODS.get(" ".join([name, *rest]), METHODS.get(name, name))
    return (
        found if " ".join([name, *rest]) in METHODS or not rest else f"{found} ({' '.join(rest)})"
    )


def in_order(methods: list[str]) -> list[str]:
    """Those that are shown first at the beginning, so that their colours differ."""
    place = {name: at for at, name in enumerate(FIRST)}
    return sorted(methods, key=lambda method: place.get(method.partition(" (float")[0], len(place)))


def first_of(methods: list[str], best: dict[str, float], most: int = 5) -> list[str]:
    """Which methods of a set are shown first, at most one of each name of FIRST.

    The method that the page recommends comes on top, so that there are six at most.
    """
    chosen: list[str] = []
    for wanted in FIRST:
        same = [m for m in methods if m == wanted or m.startswith(f"{wanted} (")]
        chosen += sorted(same, key=lambda m: ("float64" not in m, m))[:1]
    others = sorted((m for m in methods if m not in chosen), key=lambda m: -best.get(m, 0.0))
    return [*chosen, *others][:most]
