"""Pages that show a model or a benchmark: one HTML file each, which needs no network.

``model_page`` shows a fitted model, and how it does on data; ``Page`` and the parts of
:mod:`slimsvm.report.parts` build any other page.
"""

from slimsvm.report.model import model_page
from slimsvm.report.page import Page
from slimsvm.report.parts import (
    Axis,
    Chart,
    Comparison,
    Facts,
    Matrix,
    Model,
    Pictures,
    Series,
    Table,
    Text,
)

__all__ = [
    "Axis",
    "Chart",
    "Comparison",
    "Facts",
    "Matrix",
    "Model",
    "Page",
    "Pictures",
    "Series",
    "Table",
    "Text",
    "model_page",
]
