"""The table of docs/reliability.md, from what ran: campaigns, and the benchmark of certificates."""

import json
from pathlib import Path

from tests.soak.campaign import ROOT, read_results

BEGIN, END = "<!-- soak:begin -->", "<!-- soak:end -->"
PAGE = ROOT / "docs" / "reliability.md"
CERTIFICATES = ROOT / "benchmarks" / "results" / "certificates.json"
# what a whole campaign has; those of files are 1,000,000 together
SIZES = {
    "model_files": 500_000,
    "forged_model_files": 100_000,
    "libsvm_model_files": 150_000,
    "svmlight_model_files": 50_000,
    "data_files_svm": 50_000,
    "data_files_csv": 50_000,
    "data_files_npz": 20_000,
    "data_files_parquet": 20_000,
    "checkpoints_SVC": 20_000,
    "checkpoints_SparseSVC": 10_000,
    "benchmark_results": 30_000,
    "killed_while_writing": 1000,
    "killed_while_training": 200,
    "interrupted_fits": 2000,
    "metamorphic_relations": 20_000,
    "certificates": 1000,  # and a benchmark, see below
    "memory_budget": 100,
    "growth": 100_000,
    "eight_threads": 10_000,
    "stream": 10_000_000,
}


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


def is_of_files(name):
    """Whether a campaign counts files."""
    return "files" in name or name.startswith(("checkpoints_", "benchmark_results"))


def summary(results, certificates):
    """The sizes that were aimed at, and what there is of them."""
    n_files = sum(found["tried"] for name, found in results.items() if is_of_files(name))
    n_seeds = results.get("certificates", {}).get("tried", 0)
    n_problems = n_seeds + certificates["problems"]
    lines = ["| | tried | aimed at |", "|---|---|---|", f"| files | {n_files:,} | 1,000,000 |"]
    for name, size in SIZES.items():
        if is_of_files(name) or name == "certificates":
            continue
        tried = results.get(name, {}).get("tried", 0)
        lines.append(f"| {name.replace('_', ' ')} | {tried:,} | {size:,} |")
    lines.append(f"| problems whose certificates were checked | {n_problems:,} | 20,000 |")
    return "\n".join(lines)


def checked_certificates(path: Path = CERTIFICATES):
    """What ``python -m benchmarks run certificates --full`` has found so far."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else {}
    cells = {name: cell for name, cell in cells.items() if "problems" in cell}
    return {
        "cells": len(cells),
        "problems": sum(cell["problems"] for cell in cells.values()),
        "claims": sum(cell["claims"] for cell in cells.values()),
        "false": sum(len(cell["false"]) for cell in cells.values()),
        "errors": sum(len(cell["errors"]) for cell in cells.values()),
        "last": max((cell["measured"]["at"][:10] for cell in cells.values()), default="never"),
    }


def in_words(found):
    """The line below the table."""
    return (
        "The same comparison runs as a benchmark (`python -m benchmarks run certificates --full`, "
        f"other seeds): {found['problems']:,} problems of {found['cells']} kinds with "
        f"{found['claims']:,} claims, {found['false']} of them false, {found['errors']} errors; "
        f"last run {found['last']}."
    )


def write_table(page: Path = PAGE):
    """Put the table in its place on the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    results, certificates = read_results(), checked_certificates()
    parts = [summary(results, certificates), table(results), in_words(certificates)]
    made = "\n\n".join(parts)
    page.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_table()
