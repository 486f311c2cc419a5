"""Configuration of the documentation; build it with ``make docs``."""

import re
from typing import Any

from slimsvm import __version__

project = "slimsvm"
author = "the slimsvm developers"
copyright = "2026, the slimsvm developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types, in words
autosummary_generate = False  # the tables are an overview; api.md documents the names themselves
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"slimsvm {release}"
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}


def skip_inherited(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what an estimator only inherits from scikit-learn.

    Its text points to pages of scikit-learn's own documentation.
    """
    from_scikit_learn = (getattr(member, "__module__", None) or "").startswith("sklearn")
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or from_scikit_learn else None  # None: autodoc decides


def escape_bars(
    app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    """Keep the bars of |x|^2, which reStructuredText takes for the start of a substitution.

    Literals and examples stay as they are.
    """
    in_example = False
    for i, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[i] = "".join(
                part if part.startswith("`") else part.replace("|", r"\|")
                for part in re.split(r"(``.*?``|`[^`]*`)", line)
            )


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
