"""``python -m slimsvm`` is the command ``slimsvm``; with a script, it runs that under the patch.

    python -m slimsvm [--profile] script.py [arguments]
    python -m slimsvm [--profile] -m module [arguments]

``--profile`` says at the end what was replaced, what was left to scikit-learn and why, and the
time of each.
"""

from __future__ import annotations

import os
import runpy
import sys

from slimsvm.cli import main


def is_script(arguments: list[str]) -> bool:
    """Whether these ask for a script, not for a command.

    Examples
    --------
    >>> from slimsvm.__main__ import is_script
    >>> is_script(["--profile", "train.py"]), is_script(["train", "--help"])
    (True, False)
    """
    rest = arguments[1:] if arguments[:1] == ["--profile"] else arguments
    return bool(rest) and (rest[0] == "-m" or rest[0].endswith(".py"))


def run_script(arguments: list[str]) -> None:
    """Run a script or a module with ``sklearn.svm`` patched; an error in it is its own."""
    from slimsvm.patching import patch_sklearn

    profile = arguments[0] == "--profile"
    target, *rest = arguments[1:] if profile else arguments
    if target == "-m" and not rest:
        sys.exit("python -m slimsvm -m: which module?")
    with patch_sklearn() as patch:
        try:
            if target == "-m":
                sys.argv = rest
                sys.path[0] = os.getcwd()
                runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
            else:
                if not os.path.exists(target):
                    sys.exit(f"python -m slimsvm: there is no file {target!r}")
                sys.argv = [target, *rest]
                sys.path[0] = os.path.dirname(os.path.abspath(target))
                runpy.run_path(target, run_name="__main__")
        finally:
            if profile:
                print(patch.profile.in_words(), file=sys.stderr)


if __name__ == "__main__":
    if is_script(sys.argv[1:]):
        run_script(sys.argv[1:])
    else:
        main()
