"""The pictures of the report pages in README and docs: ``make screenshots``.

Needs Playwright and a Chromium (CONTRIBUTING.md): Debian's, or the one that SLIMSVM_CHROMIUM names.
Writes docs/images/page_*.png, each below 200 kB.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.report import RESULTS, page_of
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SparseSVC
from slimsvm.report import model_page

IMAGES = Path(__file__).parent / "images"
MOST_BYTES = 200_000
WIDE = (1280, 860)
# name of the picture: page, size of the window, scheme, and where it begins
SHOTS = {
    "page_benchmarks": ("benchmarks", WIDE, "light", None),
    "page_model": ("digits", WIDE, "light", None),
    "page_model_size": ("digits", WIDE, "light", "How small can it be?"),
    "page_sliders": ("iris", WIDE, "dark", "Try it"),
}


def pages() -> dict[str, str]:
    """The pages that are shown."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    digits = SparseSVC(50, C=10, gamma=1e-3, validation_fraction=0.2, random_state=0).fit(X, y)
    data = load_iris(as_frame=True)
    names = data.target_names[data.target]
    A, A_test, b, b_test = train_test_split(data.data, names, random_state=0)
    iris = make_pipeline(StandardScaler(), SparseSVC(10, random_state=0)).fit(A, b)
    return {
        "benchmarks": page_of(RESULTS),
        "digits": model_page(digits, X_test, y_test, name="Handwritten digits"),
        "iris": model_page(iris, A_test, b_test, name="Iris"),
    }


def main() -> None:
    """Write all pictures."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("screenshots need Playwright: pip install -e '.[browser]'")
    chromium = os.environ.get("SLIMSVM_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("screenshots need Chromium: apt install chromium, or set SLIMSVM_CHROMIUM")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        for name, html in pages().items():
            Path(folder, f"{name}.html").write_text(html, encoding="utf-8")
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (page_name, (width, height), scheme, heading) in SHOTS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page = context.new_page()
            page.goto(Path(folder, f"{page_name}.html").as_uri())
            if heading is not None:
                page.evaluate(
                    "(text) => [...document.querySelectorAll('h2')]"
                    ".find((h) => h.textContent === text).parentNode.scrollIntoView()",
                    heading,
                )
            path = IMAGES / f"{name}.png"
            page.screenshot(path=path)
            context.close()
            size = path.stat().st_size
            print(f"{path.name}: {size:,} bytes")
            if size > MOST_BYTES:
                sys.exit(f"{path.name} has more than {MOST_BYTES:,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
