"""
===========================
Features that say something
===========================

Choosing features before an SVM, in a Pipeline. (scikit-learn: "SVM-Anova: SVM with
univariate feature selection")
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectPercentile, f_classif
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC

X, y = load_iris(return_X_y=True)
X = np.hstack([X, 2 * np.random.default_rng(0).random((150, 36))])  # 36 features of noise
percentiles = (3, 6, 10, 20, 40, 60, 80, 100)
model = make_pipeline(SelectPercentile(f_classif), StandardScaler(), SVC(gamma="auto"))
scores = [
    cross_val_score(model.set_params(selectpercentile__percentile=share), X, y)
    for share in percentiles
]
fig, ax = plt.subplots()
ax.errorbar(percentiles, np.mean(scores, axis=1), np.std(scores, axis=1))
ax.set(xlabel="percent of the features", ylabel="accuracy")
