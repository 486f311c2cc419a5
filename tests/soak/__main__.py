"""``python -m tests.soak --minutes 30``: all campaigns, an equal share of the time for each."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.soak.report import write_table

HERE = Path(__file__).parent


def main():
    """Run, then write the table, whatever failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", default="", help="as -k of pytest")
    parser.add_argument(
        "--complete",
        action="store_true",
        help="end a campaign that has reached the size that is aimed at",
    )
    asked = parser.parse_args()
    pytest = [sys.executable, "-m", "pytest", str(HERE), "-q", "-m", "long or not long"]
    pytest += ["-p", "no:cacheprovider", *(["-k", asked.only] if asked.only else [])]
    listed = subprocess.run([*pytest, "--collect-only"], capture_output=True, text=True)
    n_campaigns = sum("::" in line for line in listed.stdout.splitlines())
    if not n_campaigns:
        print(listed.stdout, listed.stderr)
        return 2
    share = asked.minutes / n_campaigns
    print(f"{n_campaigns} campaigns, {share:.2f} minutes each", flush=True)
    pytest += ["-s", "--soak-minutes", str(share), *(["--soak-complete"] * asked.complete)]
    ended = subprocess.run(pytest).returncode
    write_table()
    return ended


if __name__ == "__main__":
    sys.exit(main())
