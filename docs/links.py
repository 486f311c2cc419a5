"""Check the links of all pages in Markdown: of files and headings here, and of pages elsewhere.

    python docs/links.py

It fails for a file or heading that is not there, and for a page whose server says so. Pages that
could not be reached are named at the end, and fail nothing: without a network that is all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]\[]*\]\(<?([^()\s>]+)>?\)")
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
SECONDS = 15.0


def pages(root: Path = ROOT) -> list[Path]:
    """README and its neighbours, and all pages of the documentation."""
    built = {"_build", "generated", "gallery"}
    own = [p for p in root.glob("docs/**/*.md") if not built & set(p.relative_to(root).parts)]
    return sorted([*root.glob("*.md"), *own])


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The number of the line and the target of every link outside of code."""
    text = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), page.read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def anchors(page: Path) -> set[str]:
    """What may stand behind # for a page: its headings, as GitHub and Sphinx make names of them."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    names = (re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)
    return {*names, *re.findall(r"^\(([\w-]+)\)=$", text, re.M)}


def wrong_here(page: Path, target: str) -> str:
    """What is wrong with a link to a file or heading of this project; empty if nothing is."""
    path, _, anchor = target.partition("#")
    to = (page.parent / path).resolve() if path else page
    if not to.exists():
        return "there is no such file"
    if anchor and to.suffix == ".md" and anchor not in anchors(to):
        return f"there is no heading #{anchor}"
    return ""


def wrong_elsewhere(address: str) -> tuple[str, bool]:
    """What is wrong with a page elsewhere, and whether its server said so."""
    try:
        with urlopen(Request(address, headers={"User-Agent": "links"}), timeout=SECONDS):
            return "", True
    except HTTPError as error:
        return f"{error.code} {error.reason}", error.code in (404, 410)
    except (URLError, OSError) as error:
        return str(getattr(error, "reason", error)), False


def main() -> int:
    """Check everything; the exit code."""
    broken, missed, away = [], [], {}
    n_links = 0
    for page in pages():
        for line, target in links(page):
            n_links += 1
            where = f"{page.relative_to(ROOT)}:{line}: {target}"
            if target.startswith("mailto:"):
                continue
            if not re.match(r"https?://", target):
                if text := wrong_here(page, target):
                    broken.append(f"{where}: {text}")
                continue
            if target not in away:
                away[target] = wrong_elsewhere(target)
            text, said = away[target]
            if text:
                (broken if said else missed).append(f"{where}: {text}")
    for line in [*broken, *(f"not reached: {line}" for line in missed)]:
        print(line)
    print(f"{n_links} links: {len(broken)} broken, {len(missed)} not reached")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
