"""A twin of ``svm-predict``: reads a LIBSVM model file and predicts, in plain loops, as the
format's description says. Slow and independent.

For a pair of classes (i, j), i < j in the order of the file's labels: the sum over the support
vectors of block i with coefficient row j - 1, plus those of block j with row i, minus rho; above
zero is a vote for i, else for j; the most votes win, the first on ties. Regression and one-class:
the sum of coef * k minus rho, which is the prediction, or whose sign is.
"""

import math
from dataclasses import dataclass, field


@dataclass
class Model:
    head: dict[str, list[str]] = field(default_factory=dict)
    coefs: list[list[float]] = field(default_factory=list)
    vectors: list[dict[int, float]] = field(default_factory=list)

    def word(self, key: str) -> str:
        return self.head[key][0]

    @property
    def classifies(self) -> bool:
        return self.word("svm_type") in ("c_svc", "nu_svc")


def read_model(path) -> Model:
    model = Model()
    with open(path) as file:
        for line in file:
            key, *words = line.split()
            if key == "SV":
                break
            model.head[key] = words
        n_coef = int(model.word("nr_class")) - 1
        for line in file:
            words = line.split()
            model.coefs.append([float(word) for word in words[:n_coef]])
            model.vectors.append(
                {int(i): float(v) for i, v in (word.split(":") for word in words[n_coef:])}
            )
    assert len(model.coefs) == int(model.word("total_sv"))
    return model


def kernel(model: Model, vector: dict[int, float], x: dict[int, float]) -> float:
    kind = model.word("kernel_type")
    if kind == "precomputed":
        return x[int(vector[0])]
    dot = sum(value * x.get(index, 0.0) for index, value in vector.items())
    if kind == "linear":
        return dot
    gamma = float(model.word("gamma"))
    if kind == "rbf":
        return math.exp(
            -gamma * sum((vector.get(i, 0.0) - x.get(i, 0.0)) ** 2 for i in {*vector, *x})
        )
    if kind == "polynomial":
        return (gamma * dot + float(model.word("coef0"))) ** int(model.word("degree"))
    assert kind == "sigmoid"
    return math.tanh(gamma * dot + float(model.word("coef0")))


def decide(model: Model, x: dict[int, float]) -> tuple[float, list[float], list[int]]:
    """The prediction, the decision values, and the votes, for one row {index: value}."""
    values = [kernel(model, vector, x) for vector in model.vectors]
    rho = [float(word) for word in model.head["rho"]]
    if not model.classifies:
        total = (
            sum(coef[0] * value for coef, value in zip(model.coefs, values, strict=True)) - rho[0]
        )
        if model.word("svm_type") == "one_class":
            return (1.0 if total > 0 else -1.0), [total], []
        return total, [total], []
    labels = [int(word) for word in model.head["label"]]
    starts = [0]
    for word in model.head["nr_sv"]:
        starts.append(starts[-1] + int(word))
    decisions, votes = [], [0] * len(labels)
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += model.coefs[k][j - 1] * values[k]
            for k in range(starts[j], starts[j + 1]):
                total += model.coefs[k][i] * values[k]
            total -= rho[len(decisions)]
            decisions.append(total)
            votes[i if total > 0 else j] += 1
    return float(labels[votes.index(max(votes))]), decisions, votes


def predict(path, rows) -> tuple[list[float], list[list[float]], list[list[int]]]:
    """Predictions, decision values and votes for rows given as dicts {index: value}."""
    model = read_model(path)
    answers = [decide(model, row) for row in rows]
    return [a[0] for a in answers], [a[1] for a in answers], [a[2] for a in answers]
