"""Bounds of parameters: scikit-learn's own, under our name, too."""

from sklearn.svm import l1_min_c as l1_min_c
