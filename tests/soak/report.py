"""The table of docs/reliability.md, from what ran."""

from pathlib import Path

from tests.soak.campaign import ROOT, read_results

BEGIN, END = "<!-- soak:begin -->", "<!-- soak:end -->"
PAGE = ROOT / "docs" / "reliability.md"


def table(results):
    """Rows of Markdown, one for each campaign."""
    lines = [
        "| campaign | promise | tried | failed | hours | last run |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in sorted(results.items()):
        measured = f" ({found['measured']})" if "measured" in found else ""
        lines.append(
            f"| {name.replace('_', ' ')} | {found['promise']}{measured} "
            f"| {found['tried']:,} | {found['failed']:,} | {found['seconds'] / 3600:.2f} "
            f"| {found['last_run']} |"
        )
    return "\n".join(lines)


def write_table(page: Path = PAGE):
    """Put the table in its place on the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{table(read_results())}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_table()
