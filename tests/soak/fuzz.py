"""Parsers under a fuzzer that sees which branches an input takes: ``python -m tests.soak.fuzz``.

    python -m tests.soak.fuzz libsvm -max_total_time=60 [more options of libFuzzer]

Needs `atheris` (pip install atheris), which is no requirement of the tests: where it is missing,
nothing here runs. Whatever the bytes are, reading must end in a result or in a ValueError or
OSError; everything else is a crash, which libFuzzer writes to a file that reproduces it.
"""

import inspect
import os
import sys
import tempfile
import warnings
from pathlib import Path

from slimsvm.cli import data, text
from slimsvm.persistence import libsvm, native, plain, svmlight, values
from slimsvm.persistence import text as model_text
from tests.soak.test_files import CLEAR, foreign, models, tables

PARSERS = (data, text, libsvm, svmlight, native, plain, values, model_text)


def instrument():
    """The functions of parsers alone: Numba could not compile loops that are instrumented."""
    import atheris

    for module in PARSERS:
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                setattr(module, name, atheris.instrument_func(value))


def target(name, folder):
    """What reads a file of that format, and files to begin with."""
    path = folder / f"input.{name}"
    if name == "slim":
        return path, native.load, list(models().values())
    if name in ("libsvm", "svmlight"):
        files = [content for (kind, _), content in foreign(folder).items() if kind == name]
        load = getattr({"libsvm": libsvm, "svmlight": svmlight}[name], f"load_{name}")
        return path, lambda path: load(path, n_features=3), files
    return path, lambda path: data.read(os.fspath(path)), [tables(folder)[f"x.{name}"]]


def main():
    """Fuzz one format; libFuzzer ends the process."""
    import atheris

    folder = Path(tempfile.mkdtemp())
    instrument()
    path, load, files = target(sys.argv[1], folder)
    begin = folder / "corpus"
    begin.mkdir()
    for k, content in enumerate(files):
        (begin / str(k)).write_bytes(content)

    def one_input(content):
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                load(path)
            except CLEAR as error:
                assert str(error).strip(), "an error without words"

    options = [sys.argv[0], "-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1"]
    atheris.Setup([*options, *sys.argv[2:], str(begin)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
