"""Numbers that several threads read and write in compiled loops: int64 entries of one array.

Numba has no such operations for the processor; these are LLVM's own. Loads acquire and stores
release: what a thread wrote before a store is seen by the one that loads what was stored.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # its type takes the context for an argument


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of an entry."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def load(typing_context: Any, array: Any, i: Any) -> Any:
    """array[i]"""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", 8)

    return types.int64(array, types.int64), code


@intrinsic
def store(typing_context: Any, array: Any, i: Any, value: Any) -> Any:
    """array[i] = value"""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), code


@intrinsic
def add(typing_context: Any, array: Any, i: Any, value: Any) -> Any:
    """array[i] += value; returns what it was before."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw(
            "add", _place(context, builder, signature, args), args[2], "acq_rel"
        )

    return types.int64(array, types.int64, types.int64), code


@intrinsic
def exchange(typing_context: Any, array: Any, i: Any, known: Any, value: Any) -> Any:
    """array[i] = value if it is ``known``; returns whether it was."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        pair = builder.cmpxchg(place, args[2], args[3], "acq_rel", "monotonic")
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), code
