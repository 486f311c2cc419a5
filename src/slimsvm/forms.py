"""From inner products to kernel values: compiled loops over a tile, one for each form of kernel.

Compiled loops must finish a tile without coming back to the interpreter, and Numba takes no
functions as arguments. So a kernel is a number for its form and three parameters here, and
:func:`finish` knows all forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]

# -- the exponential -------------------------------------------------------------------------------
# exp(t) = 2^n exp(f), n the integer nearest to t/ln 2, |f| <= ln(2)/2. n is found by adding
# 1.5 * 2^23 (2^52), which rounds to an integer and leaves it in the low bits; 2^n is assembled from
# those bits. Only adds, multiplications and shifts: LLVM turns the loop into vector code without a
# vector math library. ln 2 is split into a short high part (n * high is exact) and a rest (Cody &
# Waite 1980).
_F4_LOG2E, _F4_LN2_HIGH, _F4_LN2_LOW = (
    np.float32(1.44269504),
    np.float32(0.693359375),
    np.float32(-2.12194440e-4),
)
_F4_MAGIC, _F4_LEAST = np.float32(12582912.0), np.float32(-87.0)
# minimax coefficients of exp on [-ln2/2, ln2/2] from Cephes' expf (Moshier 1992): their relative
# error is 1.2e-7
_P5, _P4, _P3 = (
    np.float32(1.9875691500e-4),
    np.float32(1.3981999507e-3),
    np.float32(8.3334519073e-3),
)
_P2, _P1, _P0 = (
    np.float32(4.1665795894e-2),
    np.float32(1.6666665459e-1),
    np.float32(5.0000001201e-1),
)
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)
_F8_LOG2E, _F8_LN2_HIGH, _F8_LN2_LOW = (
    1.4426950408889634,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)
_F8_MAGIC, _F8_LEAST = 6755399441055744.0, -708.0


@compiled
def _exp_rows_f4(values: Array, scale: float, shift: float, row: Array, column: Array) -> None:
    """values[i, j] = exp(min(0, scale * values[i, j] + shift * (row[i] + column[j]))), float32."""
    scale4, shift4 = np.float32(scale), np.float32(shift)
    for i in range(values.shape[0]):
        row_i = row[i]
        for j in range(values.shape[1]):
            given = scale4 * values[i, j] + shift4 * (row_i + column[j])
            t = min(max(given, _F4_LEAST), _ZERO)
            shifted = np.float32(t * _F4_LOG2E + _F4_MAGIC)
            n = shifted - _F4_MAGIC
            f = t - n * _F4_LN2_HIGH
            f = f - n * _F4_LN2_LOW
            p = _P5 * f + _P4
            p = p * f + _P3
            p = p * f + _P2
            p = p * f + _P1
            p = p * f + _P0
            p = p * (f * f) + f + _ONE
            bits = np.int32(shifted.view(np.int32) << np.int32(23))
            power = p * np.int32(bits + np.int32(127 << 23)).view(np.float32)
            values[i, j] = power if given >= _F4_LEAST else _ZERO


@compiled
def exp_rows_f8(values: Array, scale: float, shift: float, row: Array, column: Array) -> None:
    """values[i, j] = exp(min(0, scale * values[i, j] + shift * (row[i] + column[j]))), float64."""
    for i in range(values.shape[0]):
        row_i = row[i]
        for j in range(values.shape[1]):
            given = scale * values[i, j] + shift * (row_i + column[j])
            t = min(max(given, _F8_LEAST), 0.0)
            shifted = np.float64(t * _F8_LOG2E + _F8_MAGIC)
            n = shifted - _F8_MAGIC
            f = t - n * _F8_LN2_HIGH
            f = f - n * _F8_LN2_LOW
            # the Taylor series to f^13/13!: its remainder on |f| <= ln(2)/2 is below 5e-18
            p = 1.6059043836821613e-10 * f + 2.08767569878681e-09
            p = p * f + 2.505210838544172e-08
            p = p * f + 2.755731922398589e-07
            p = p * f + 2.7557319223985893e-06
            p = p * f + 2.48015873015873e-05
            p = p * f + 1.984126984126984e-04
            p = p * f + 1.388888888888889e-03
            p = p * f + 8.333333333333333e-03
            p = p * f + 4.1666666666666664e-02
            p = p * f + 1.6666666666666666e-01
            p = p * f + 0.5
            p = p * (f * f) + f + 1.0
            bits = np.int64(shifted.view(np.int64) << np.int64(52))
            power = p * np.int64(bits + np.int64(1023 << 52)).view(np.float64)
            values[i, j] = power if given >= _F8_LEAST else 0.0


def exp_rows(values: Array, scale: float, shift: float, row: Array, column: Array) -> None:
    """Overwrite ``values`` with exp(min(0, scale * values + shift * (row + column))).

    The loop is vector code. Arguments below -87 (float32) or -708 (float64) give zero.
    """
    (_exp_rows_f4 if values.itemsize == 4 else exp_rows_f8)(values, scale, shift, row, column)


# For compiled callers: only the loop of their type is compiled with them. No annotations: Numba
# compares them with those of the function returned.
@overload(exp_rows)
def _exp_rows(values, scale, shift, row, column):
    loop = _exp_rows_f4 if values.dtype == types.float32 else exp_rows_f8

    return lambda values, scale, shift, row, column: loop(values, scale, shift, row, column)


@compiled
def l1_distances(X: Array, Z_transposed: Array, out: Array) -> None:
    """out[i, j] = sum_k |X[i, k] - Z_transposed[k, j]|

    The innermost loop runs over j, so that it becomes vector code without reassociation.
    """
    for i in range(X.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(X.shape[1]):
            x = X[i, k]
            for j in range(out.shape[1]):
                out[i, j] += abs(x - Z_transposed[k, j])


LINEAR, EXPONENTIAL, POWER, TANH = range(4)  # what becomes of an inner product


@compiled
def finish(
    form: int, p: float, q: float, degree: int, dots: Array, x_sq: Array, z_sq: Array
) -> None:
    """Turn inner products into kernel values, in place.

    It is one function for all forms, so that compiled loops can call it.

    EXPONENTIAL: exp(2 p dots - p (x_sq + z_sq)); POWER: (p dots + q)^degree, by repeated squaring;
    TANH: tanh(p dots + q).
    """
    if form == EXPONENTIAL:
        exp_rows(dots, 2.0 * p, -p, x_sq, z_sq)
    elif form == POWER:
        for i in range(dots.shape[0]):
            for j in range(dots.shape[1]):
                base, power, left = p * dots[i, j] + q, 1.0, degree
                while left > 0:
                    if left & 1:
                        power *= base
                    base *= base
                    left >>= 1
                dots[i, j] = power
    elif form == TANH:
        for i in range(dots.shape[0]):
            for j in range(dots.shape[1]):
                dots[i, j] = np.tanh(p * dots[i, j] + q)
