"""Options that are letters, as the programs of LIBSVM and SVM-light have them.

An option is a word that begins with a minus; its value is the next word. A letter that is not
here is refused by name, with the nearest thing that there is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

Value = Callable[[str], Any]


class Refused(Exception):
    """Wrong usage: one sentence, and exit code 1 as the programs whose letters these are."""


@dataclass(frozen=True)
class Program:
    """A program: its name, whose letters it has, what it takes, and what it has not.

    Parameters
    ----------
    letters : dict
        For each option how its value is read; None for one without a value.
    missing : dict
        Options of the other program that are not here, with the nearest thing.
    files : tuple of str
        Names of the files that follow; those in brackets may be left out.
    weights : bool
        Whether -wi has the label i in the option itself.
    first_letter : bool
        Whether what stands behind a letter counts for nothing: LIBSVM takes -cost for -c.
    """

    name: str
    instead_of: str
    letters: dict[str, Value | None]
    files: tuple[str, ...]
    usage: str
    missing: dict[str, str]
    weights: bool = False
    first_letter: bool = False

    def parsed(self, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The options by their letters, and the files."""
        found: dict[str, Any] = {}
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "-":
            word, at = words[at], at + 1
            letter, read = self._known(word)
            if read is None:
                found[letter] = True
                continue
            if at >= len(words):
                raise Refused(f"{word} needs a value")
            try:
                value = read(words[at])
            except ValueError as error:
                raise Refused(f"{word} {words[at]}: {error}") from error
            at += 1
            if letter == "w" and self.weights:
                found.setdefault("w", {})[self._label(word)] = value
            else:
                found[letter] = value
        return found, self._files(list(words[at:]))

    def _known(self, word: str) -> tuple[str, Value | None]:
        letter = word[1:]
        if self.weights and letter[:1] == "w" and len(letter) > 1:
            letter = "w"
        elif self.first_letter and letter not in self.letters:
            letter = letter[:1] or word
        if letter in self.missing:
            raise Refused(f"{word} of {self.instead_of} is not here: {self.missing[letter]}")
        if letter not in self.letters:
            here = ", ".join(f"-{known}" for known in self.letters)
            raise Refused(f"{word} is no option of {self.instead_of}; there are {here}")
        return letter, self.letters[letter]

    def _label(self, word: str) -> int:
        try:
            return int(word[2:])
        except ValueError:
            raise Refused(f"{word}: after -w comes a label, such as -w1 or -w-1") from None

    def _files(self, given: list[str]) -> list[str]:
        least = sum(not name.startswith("[") for name in self.files)
        if least <= len(given) <= len(self.files):
            return given
        expected = " ".join(self.files)
        raise Refused(f"expected {expected} after the options, got {' '.join(given) or 'nothing'}")

    def main(self, work: Callable[[dict[str, Any], list[str]], None]) -> NoReturn:
        """Run with the arguments of the process, and end it: 0 done, 1 bad usage, data or model."""
        words = sys.argv[1:]
        if not words or words[0] in ("--help", "-?", "-help"):
            print(self.usage)
            sys.exit(0 if words else 1)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = self._warn
                work(*self.parsed(words))
        except Refused as error:
            self._say(f"{error}. Without arguments it shows its usage.")
            sys.exit(1)
        except OSError as error:
            known = error.filename and error.strerror
            self._say(f"{error.filename}: {error.strerror}" if known else str(error))
            sys.exit(1)
        except ValueError as error:
            self._say(str(error))
            sys.exit(1)
        except MemoryError:
            self._say("there is not enough memory")
            sys.exit(1)
        except KeyboardInterrupt:
            self._say("interrupted; nothing was written")
            sys.exit(130)
        sys.exit(0)

    def _say(self, text: str) -> None:
        print(f"{self.name}: error: {text}", file=sys.stderr)

    def _warn(self, message: Any, *about: Any, **more: Any) -> None:
        print(f"{self.name}: warning: {message}", file=sys.stderr)


def one_of(*values: str) -> Value:
    """A value that is one of these words."""

    def read(word: str) -> str:
        if word not in values:
            raise ValueError(f"expected one of {', '.join(values)}")
        return word

    return read


def number(least: float | None = None, above: float | None = None) -> Value:
    """A number, perhaps with a lower limit."""

    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            raise ValueError("expected a number") from None
        if least is not None and not value >= least:
            raise ValueError(f"expected a number of at least {least:g}")
        if above is not None and not value > above:
            raise ValueError(f"expected a number above {above:g}")
        return value

    return read


def whole(least: int) -> Value:
    """An integer, with a lower limit."""

    def read(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            raise ValueError("expected an integer") from None
        if value < least:
            raise ValueError(f"expected an integer of at least {least}")
        return value

    return read


def word(value: str) -> str:
    """Any word: the name of a file."""
    return value
