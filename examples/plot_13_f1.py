"""
==============
Trained for F1
==============

Where positives are rare, an SVM trained for F1 is better by F1 than one trained for
accuracy.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from slimsvm import SVC, MultivariateSVC

X, y = make_classification(4000, 20, n_informative=6, weights=[0.9], class_sep=0.8, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1500, random_state=0)
scores = {
    "SVC": f1_score(y_test, SVC().fit(X_train, y_train).predict(X_test)),
    "balanced": f1_score(
        y_test, SVC(class_weight="balanced").fit(X_train, y_train).predict(X_test)
    ),
    "MultivariateSVC": MultivariateSVC("f1", random_state=0)
    .fit(X_train, y_train)
    .score(X_test, y_test),
}
fig, ax = plt.subplots()
ax.bar(list(scores), list(scores.values()))
ax.set_ylabel("F1 on new rows")
