"""Plots of models and searches, in scikit-learn's Display convention; they need matplotlib.

A display is made by ``from_estimator`` (or ``from_search``), keeps what it shows, and draws it by
``plot``, as often as you like; ``ax_`` and ``figure_`` are what was drawn last.
"""

from slimsvm.displays.basis import BasisDisplay
from slimsvm.displays.convergence import ConvergenceDisplay
from slimsvm.displays.grid import GridDisplay
from slimsvm.displays.path import PathDisplay

__all__ = ["BasisDisplay", "ConvergenceDisplay", "GridDisplay", "PathDisplay"]
