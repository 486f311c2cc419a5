"""The command line of the benchmarks.

python -m benchmarks run NAME    measure
python -m benchmarks tables      write what is stored into the docs
python -m benchmarks report      write one page of it for the browser
python -m benchmarks versions    race another checkout against this one
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks import report, runner, tables, versions

NAMES = (
    "peers",
    "svmlight",
    "cpsp",
    "sampled_cuts",
    "primal",
    "rsvm",
    "rivals",
    "published",
    "kernel_rate",
    "scale",
    "startup",
    "probabilities",
    "beside",
    "certificates",
    "streams",
    "export",
    "sparse",
    "tuning",
)
COMMANDS = {
    "run": partial(runner.main, NAMES),
    "tables": partial(tables.main, NAMES),
    "report": report.main,
    "versions": versions.main,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python -m benchmarks {{{','.join(COMMANDS)}}} ...")
    COMMANDS[sys.argv[1]](sys.argv[2:])
