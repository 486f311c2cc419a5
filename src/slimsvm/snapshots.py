"""The state of a solver as plain values and arrays, and back again, without loss.

States are objects of slimsvm with numbers, arrays, lists and other such objects in them. Nothing is
executed on the way back: objects are made without their ``__init__``, and only those of classes of
slimsvm. What belongs to the problem is not part of a state: it is referred to by its name
(:func:`surroundings`) and found again in the problem of the fit that goes on.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
OURS = "slimsvm."
DEPTH = 4  # of objects within objects of a problem
KINDS = "biufUS"  # of arrays that are plain
GENERATORS = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}


def surroundings(problem: Any) -> dict[str, Any]:
    """What a state may refer to: the problem, its arrays and the objects within it, by name."""
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def look(value: Any, name: str, depth: int) -> None:
        ours = type(value).__module__.startswith(OURS) and hasattr(value, "__dict__")
        if id(value) in seen or not (ours or isinstance(value, np.ndarray) or sp.issparse(value)):
            return
        seen.add(id(value))
        found[name] = value
        for key, part in vars(value).items() if ours and depth < DEPTH else ():
            look(part, f"{name}.{key}", depth + 1)

    look(problem, "problem", 0)
    return found


class Frozen:
    """A value taken apart: a tree that JSON can hold, and arrays.

    Examples
    --------
    >>> value = {"w": np.arange(3.0), "parts": (1, [np.inf])}
    >>> Frozen(value).thawed()
    {'w': array([0., 1., 2.]), 'parts': (1, [inf])}
    """

    def __init__(self, value: Any, outside: dict[str, Any] | None = None) -> None:
        self.arrays: list[Array] = []
        self._names = {id(part): name for name, part in (outside or {}).items()}
        self._places: dict[int, int] = {}
        self._held: list[Any] = []  # so that no other object gets the address of one of these
        self.tree = self._taken(value)
        del self._names, self._places, self._held

    @classmethod
    def of(cls, tree: Any, arrays: list[Array]) -> Frozen:
        """From its parts."""
        made = cls.__new__(cls)
        made.tree, made.arrays = tree, arrays
        return made

    def thawed(self, outside: dict[str, Any] | None = None) -> Any:
        """The value again; KeyError where something outside is not there."""
        return _Thawing(self.arrays, outside or {}).value(self.tree)

    def _taken(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self._names:
            return {"outside": self._names[id(value)]}
        if id(value) in self._places:
            return {"same": self._places[id(value)]}
        if isinstance(value, np.generic):
            return {"scalar": self._kept(np.asarray(value))}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, tuple) and type(value) is not tuple:  # with names
            return {"named": _name(value), "parts": [self._taken(part) for part in value]}
        if isinstance(value, tuple):
            return {"tuple": [self._taken(part) for part in value]}
        self._places[id(value)] = len(self._held)
        self._held.append(value)
        if isinstance(value, np.ndarray):
            words = value.dtype == object and all(type(of) is str for of in value.flat)
            return (
                {"words": self._kept(value.astype(str))} if words else {"array": self._kept(value)}
            )
        if isinstance(value, list):
            return {"list": [self._taken(part) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self._taken(k), self._taken(v)] for k, v in value.items()]}
        if isinstance(value, np.random.Generator):
            return {"generator": self._taken(value.bit_generator.state)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self._taken(value.get_state(legacy=False))}
        return self._object(value)

    def _object(self, value: Any) -> Any:
        name, left = _name(value), getattr(type(value), "not_kept", ())
        empty = getattr(type(value), "kept_empty", ())  # dictionaries that are filled again
        fields = {
            k: self._taken({} if k in empty else v) for k, v in vars(value).items() if k not in left
        }
        return {"object": name, "fields": fields}

    def _kept(self, array: Array) -> int:
        if array.dtype.kind not in KINDS:
            raise TypeError(f"an array of {array.dtype} cannot be kept")
        self.arrays.append(np.array(array, order="K"))
        return len(self.arrays) - 1


class _Thawing:
    """The way back; objects are numbered as they were met."""

    def __init__(self, arrays: list[Array], outside: dict[str, Any]) -> None:
        self.arrays, self.outside, self.met = arrays, outside, []  # type: ignore[var-annotated]

    def value(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        kind, content = next(iter(tree.items()))
        if kind == "float":
            return float(content)
        if kind == "outside":
            return self.outside[content]
        if kind == "same":
            return self.met[content]
        if kind == "scalar":
            return self.arrays[content][()]
        if kind == "dtype":
            return np.dtype(content)
        if kind == "tuple":
            return tuple(self.value(part) for part in content)
        if kind == "named":
            return tuple.__new__(_class(content), [self.value(part) for part in tree["parts"]])
        return self._met(kind, content, tree)

    def _met(self, kind: str, content: Any, tree: dict[str, Any]) -> Any:
        place = len(self.met)
        self.met.append(None)
        if kind in ("array", "words"):
            kept = self.arrays[content]
            self.met[place] = kept.copy() if kind == "array" else kept.astype(object)
        elif kind == "list":
            self.met[place] = []
            self.met[place].extend(self.value(part) for part in content)
        elif kind == "dict":
            self.met[place] = {}
            self.met[place].update((self.value(k), self.value(v)) for k, v in content)
        elif kind == "generator":
            state = self.value(content)
            bits = GENERATORS[state["bit_generator"]]()
            bits.state = state
            self.met[place] = np.random.Generator(bits)
        elif kind == "random_state":
            self.met[place] = np.random.RandomState()
            self.met[place].set_state(self.value(content))
        elif kind == "object":
            self.met[place] = made = object.__new__(_class(content))
            for name, part in tree["fields"].items():
                made.__dict__[name] = self.value(part)
        else:
            raise ValueError(f"{kind!r} is no kind of value")
        return self.met[place]


def _name(value: Any) -> str:
    """The class of an object, if it is one of slimsvm."""
    kind = type(value)
    if not kind.__module__.startswith(OURS) or "<" in kind.__qualname__:
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str) -> Any:
    """A class of slimsvm by its name."""
    module, _, path = name.partition(":")
    if not module.startswith(OURS):
        raise ValueError(f"{name} is no class of slimsvm")
    kind: Any = import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or kind.__module__ != module:
        raise ValueError(f"{name} is no class of slimsvm")
    return kind
