"""An ONNX model as the bytes of its file, without a second copy of its arrays.

Protocol Buffers' own serialisation holds the message, a buffer and the bytes at once: three times
the model. Here the arrays of the graph (its initializers, nearly all of a model) are written one by
one; everything else is serialised as usual. The result is the same message: fields of a message may
come in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# number of a field and its kind (2: so many bytes follow), as they stand in a file
GRAPH, INITIALIZER, RAW = (bytes([number << 3 | 2]) for number in (7, 5, 9))


def size_of(model: Any) -> int:
    """Bytes of the file."""
    return sum(size for size, _ in _parts(model))


def pieces(model: Any) -> Iterator[bytes]:
    """The file, in order."""
    for _, part in _parts(model):
        yield part()


def _parts(model: Any) -> Iterator[tuple[int, Any]]:
    """The size of each piece, and a function that makes it."""
    rest, graph = type(model)(), type(model.graph)()
    _copy(model, rest, "graph")
    _copy(model.graph, graph, "initializer")
    head, inner = rest.SerializeToString(), graph.SerializeToString()
    heads = []
    for tensor in model.graph.initializer:
        own = type(tensor)()
        _copy(tensor, own, "raw_data")
        n_raw, small = len(tensor.raw_data), own.SerializeToString()
        if tensor.HasField("raw_data"):  # strings have a field of their own
            small += RAW + _varint(n_raw)
        heads.append(INITIALIZER + _varint(len(small) + n_raw) + small)
    tensors = list(model.graph.initializer)
    whole = len(inner) + sum(
        len(one) + len(tensor.raw_data) for one, tensor in zip(heads, tensors, strict=True)
    )
    opening = head + GRAPH + _varint(whole) + inner
    yield len(opening), lambda: opening
    for one, tensor in zip(heads, tensors, strict=True):
        yield len(one), lambda one=one: one
        yield len(tensor.raw_data), lambda tensor=tensor: tensor.raw_data


def _copy(source: Any, target: Any, leave: str) -> None:
    """All fields that are set, but one."""
    for field, value in source.ListFields():
        if field.name == leave:
            continue
        if hasattr(value, "extend"):
            getattr(target, field.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
