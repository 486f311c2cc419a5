"""A stream that model files hold."""

from __future__ import annotations

from typing import Any, ClassVar

from slimsvm.declarations import Attribute, attribute


class KeptStream:
    """A stream that model files hold.

    Attributes
    ----------
    n_seen_
        Rows that ``partial_fit`` has learned from.
    stream_
        All that ``partial_fit`` needs to go on, as plain values: for model files.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("n_seen_", "count", optional=True),
        attribute("stream_", "stream", optional=True),
    )
    n_seen_: int
    _stream: Any  # plain values after a model file was read, until the next call

    @property
    def stream_(self) -> dict[str, Any]:
        """All that ``partial_fit`` needs to go on, as plain values: for model files."""
        if "_stream" not in self.__dict__:
            raise AttributeError(
                "There is no stream: partial_fit was not called since the last fit."
            )
        return self._stream if isinstance(self._stream, dict) else self._stream.to_dict()

    @stream_.setter
    def stream_(self, values: dict[str, Any]) -> None:
        self._stream = values

    def _forget_stream(self) -> None:
        """A fit forgets the stream."""
        for name in ("_stream", "n_seen_"):
            self.__dict__.pop(name, None)
