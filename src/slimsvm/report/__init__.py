"""Pages that show a model or a benchmark: one HTML file each, which needs no network.

``model_page`` shows a fitted model, how it does on data, and lets one try it; ``Page`` and the
parts of :mod:`slimsvm.report.parts` and its neighbours build any other page.
"""

from slimsvm.report.comparison import Answers, Comparison, Model, Numbers, Panels
from slimsvm.report.model import model_page
from slimsvm.report.page import Page
from slimsvm.report.parts import (
    Axis,
    Badge,
    Chart,
    Facts,
    Folded,
    Matrix,
    Series,
    Table,
    Text,
    Tiles,
)
from slimsvm.report.pictures import Pictures
from slimsvm.report.trying import Try

__all__ = [
    "Answers",
    "Axis",
    "Badge",
    "Chart",
    "Comparison",
    "Facts",
    "Folded",
    "Matrix",
    "Model",
    "Numbers",
    "Page",
    "Panels",
    "Pictures",
    "Series",
    "Table",
    "Text",
    "Tiles",
    "Try",
    "model_page",
]
