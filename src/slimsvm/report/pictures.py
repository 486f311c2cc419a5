"""Rows as pictures, written as PNG without a library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.report.parts import Data

Array = NDArray[Any]


@dataclass(frozen=True)
class Pictures:
    """Rows as grey pictures, each from its smallest value (black) to its largest (white)."""

    rows: Array
    shape: tuple[int, int]
    captions: Sequence[str]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        items = []
        for row, caption in zip(self.rows, self.captions, strict=True):
            image = base64.b64encode(
                grey_png(np.asarray(row, np.float64).reshape(self.shape))
            ).decode("ascii")
            items.append(
                f'<li><img src="data:image/png;base64,{image}" alt="" '
                f"/><span>{escape(caption)}</span></li>"
            )
        return f'<ul class="pictures">{"".join(items)}</ul>'


def grey_png(values: Array) -> bytes:
    r"""A matrix as a grey PNG of 8 bits, from its smallest value (black) to its largest (white).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.report.pictures import grey_png
    >>> grey_png(np.eye(8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    low, high = float(values.min()), float(values.max())
    pixels = (
        np.zeros(values.shape, np.uint8)
        if high == low
        else np.rint(255 * ((values - low) / (high - low))).astype(np.uint8)
    )
    height, width = pixels.shape
    # the first byte of a line names its filter: none
    lines = np.hstack([np.zeros((height, 1), np.uint8), pixels])

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
