"""Numba's ``njit`` with the options that every loop of the package uses.

Loops see arrays and scalars only, release the interpreter lock, and are cached on disk, so that
they are compiled once for a computer and not once for a process. Where no cache folder can be
written (a read-only installation without a home, a full disk), they are compiled in every process,
and one warning says so. One that vanishes is made again.

A cached loop is compiled anew when its own file changes, that of a loop which it calls, directly or
through others, or a number that it takes from another file: Numba looks at the first alone, and
would go on with the old code of the others.

``fastmath`` is narrowed to what keeps a result independent of the order of evaluation: contraction
to fused multiply-add, no NaNs, no signed zeros. Reassociation is left out: sums are in the order in
which they are written, and the rounding trick of the exponential survives. A loop that is nothing
but a sum may have it (:func:`compiled_sum`): then it is vector code, and its order, that of the
processor's vectors, is the same in every call.

The least and the largest of many floats are vector code only with :func:`smaller` and
:func:`larger`: what Numba makes of ``min``, ``max`` and comparisons does not say that there are no
NaNs, and LLVM then keeps to one number at a time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nnan", "ninf", "nsz"},
    "boundscheck": False,
    "no_cfunc_wrapper": True,  # nobody calls a loop from C: less to compile
}
Loop = TypeVar("Loop", bound=Callable[..., Any])
_warned = False


def compiled(loop: Loop) -> Loop:
    """Compile ``loop`` on its first call, with the options above."""
    return _compiled(loop, _OPTIONS)


def compiled_within(loop: Loop) -> Loop:
    """The same for a loop that stands in one place of another: compiled as a part of that alone."""
    return _compiled(loop, _OPTIONS | {"inline": "always"})


def compiled_sum(loop: Loop) -> Loop:
    """The same for a loop that is a sum, whose terms may be added in any order."""
    return _compiled(loop, _OPTIONS | {"fastmath": _OPTIONS["fastmath"] | {"reassoc"}})


def _compiled(loop: Loop, options: dict[str, Any]) -> Loop:
    try:
        made: Loop = _kept_if_it_can_be(njit(cache=True, **options)(loop))
        return made
    except RuntimeError as error:
        # numba: "no locator available": neither the folder of the module nor the home is writable
        _warn(error)
        return njit(**options)(loop)  # type: ignore[no-any-return]


def _warn(error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "slimsvm compiles its loops anew in every process, because no cache folder is "
            f"writable ({error}). Set the environment variable NUMBA_CACHE_DIR to a writable "
            "folder to compile only once.",
            RuntimeWarning,
            stacklevel=5,
        )


def _kept_if_it_can_be(loop: Any) -> Any:
    """The loop, whose compiled code is used also where it cannot be stored, or read again."""
    cache: Any = getattr(loop, "_cache", None)
    if not hasattr(cache, "save_overload"):
        return loop
    load, save = cache.load_overload, cache.save_overload

    # of its file, as long as what it calls is not known: that may stand below it
    loop._stamp = getattr(getattr(cache, "_cache_file", None), "_source_stamp", None)

    def load_overload(*given: Any) -> Any:
        if loop._stamp is not None:  # another Numba: its own rule holds
            cache._cache_file._source_stamp = _stamps(loop)
        try:
            return load(*given)
        except Exception:  # files that a power cut has left half written, whatever is in them
            with suppress(OSError):
                cache.flush()
            return None

    def save_overload(*given: Any) -> None:
        try:
            try:
                save(*given)
            except FileNotFoundError:  # the folder was removed after its loops were imported
                os.makedirs(cache.cache_path, exist_ok=True)
                save(*given)
        except OSError as error:
            _warn(error)

    cache.load_overload, cache.save_overload = load_overload, save_overload
    return loop


def _stamps(loop: Any) -> tuple[Any, ...]:
    """What says whether a loop in the cache is stale: of all loops that it reaches, and of itself.

    Of each the stamp of its file, and the numbers that are constants in its code.
    """
    found: dict[tuple[str, str], Any] = {}
    left = [loop]
    while left:
        one = left.pop()
        function = getattr(one, "py_func", one)
        name = function.__module__, function.__qualname__
        if name in found:
            continue
        names = [other for other in function.__code__.co_names if other in function.__globals__]
        known = {other: function.__globals__[other] for other in names}
        numbers = [(key, value) for key, value in known.items() if isinstance(value, int | float)]
        found[name] = getattr(one, "_stamp", None), *sorted(numbers)
        left += [v for v in known.values() if hasattr(v, "_stamp") or isinstance(v, FunctionType)]
    return tuple(sorted(found.items(), key=lambda item: item[0]))


def _of_two(name: str) -> Callable[..., Any]:
    """An instruction of LLVM that chooses one of two floats of a type, neither of them a NaN."""

    def choose(context: Any, x: Any, y: Any) -> Any:
        if x != y or not isinstance(x, types.Float):
            return None

        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            kind = given[0].type
            chosen = builder.module.declare_intrinsic(
                f"llvm.{name}", [kind], ir.FunctionType(kind, [kind, kind])
            )
            return builder.call(chosen, given, fastmath=("nnan", "ninf", "nsz"))

        return x(x, x), code

    return intrinsic(choose)


# for compiled loops only
smaller = _of_two("minnum")
larger = _of_two("maxnum")


def _asked_for(typing_context: Any, array: Any, i: Any) -> Any:
    """Ask for array[i] of a flat array, which is needed soon: it may be far from the processor.

    Any i is allowed.
    """

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        place = builder.bitcast(builder.gep(data, [given[1]]), pointer)
        # to be read, to be kept, data and no code
        builder.call(ask, [place, *(ir.Constant(number, flag) for flag in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


prefetch: Any = intrinsic(_asked_for)
