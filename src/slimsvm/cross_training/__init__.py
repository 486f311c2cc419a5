"""Cross-training: models of small subsets say which rows matter; the final one is trained on these.

Problem: with noisy labels the number of support vectors grows with the number of rows, since every
row on the wrong side of its margin is one (steinwart2004sparseness): training and prediction slow
down for rows that teach nothing.

Algorithm: Bakir, Bottou & Weston, "Breaking SVM complexity with cross-training", NIPS 17, 2005
(bakir2005crosstraining), as in Bakir & Chapelle's talk "Tricks of the trade for training SVMs":

    1. draw s subsets of N2 rows, half of them from either class
    2. train s models f_1 ... f_s, one on each
    3. m_i = 1/s sum_r y_i f_r(x_i),  v_i = 1/s sum_r (m_i - y_i f_r(x_i))^2     for every row
    4. discard rows with m_i + v_i < 0: noise, on the wrong side whatever the subset
    5. discard rows with m_i - v_i > 1: redundant, no support vectors anyway
    6. train the final model on the rest

What differs. Any classifier with a decision function will do, and several classes are one-vs-one. A
class with fewer than N2/2 rows gives all it has, the other one fills up; and the classes of a
subset may also have their share of all rows (``balanced_subsets``). Mean and variance are taken
over the models whose subset a row is not in (``held_out``): the talk calls step 3 cross-validation,
and a model that was trained on a noisy row will often side with it. Where subsets hold half of the
rows, as in the talk's smallest sets, that makes the difference. Rows on the margin itself, which a
solver finds at 1 +- its tolerance, are not redundant (``Discard.beyond``; zero in the talk, and in
the recipe). Either rule may be used alone (``discard``): the talk's editing and condensing. A class
that would vanish keeps its rows that are nearest to the margin, as many as a subset has of it.
Where the classifier takes weights, equal rows of one class are one row with the sum of their
weights; subsets are drawn from distinct rows, in an order that does not depend on that of the rows:
so weights are repetitions, and the order of the rows does not matter. The talk warns that the
balance of the classes is lost: it is reported, and the intercept can be chosen anew for all rows.
Its guess for the exact problem, to begin where the margins point to, multipliers and cache, is
``warm_start_dual``.

The estimator is :class:`slimsvm.CrossTraining`. Here are :mod:`~slimsvm.cross_training.subsets`,
rows and what is said about them (steps 1, 3, 4 and 5), and :mod:`~slimsvm.cross_training.models`,
which are trained on them (steps 2 and 6).

Symbols: m, v as above; sign y_i = +1 for the second class of a pair; f decision values.
Cost: s trainings on N2 rows, s n decision values, and one training on what is left.
"""

from slimsvm.cross_training.subsets import DISCARDS, Discard

__all__ = ["DISCARDS", "Discard"]
