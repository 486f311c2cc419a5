"""Graphs of ONNX, written in place: operators by name, arrays as constants.

A tensor is added to the graph itself and filled there: helpers of the onnx package copy what they
are given, which doubles the memory that a large model takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
OPSET = 17
IR_VERSION = 8  # of the runtimes of 2022 on
CODES = {"float64": 11, "float32": 1, "int64": 7, "int32": 6, "bool": 9, "str": 8}


class Graph:
    """A graph that grows; names of values are made up.

    Parameters
    ----------
    proto : onnx.GraphProto
        What is written to.
    dtype : {'float64', 'float32'}
        Of numbers that are not integers.
    """

    def __init__(self, proto: Any, dtype: str) -> None:
        self.proto, self.dtype = proto, np.dtype(dtype)
        self._n_names = 0

    def name(self, first: str = "v") -> str:
        """A new name."""
        self._n_names += 1
        return f"{first}{self._n_names}"

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; returns the name of its value."""
        from onnx import helper

        node = self.proto.node.add(op_type=operator, name=self.name(operator))
        node.input.extend(inputs)
        node.output.append(self.name())
        for key, value in sorted(attributes.items()):
            kind = CODES[value] if key == "to" else value
            node.attribute.append(helper.make_attribute(key, kind))
        return str(node.output[0])

    def call(self, value: str, name: str) -> None:
        """Give a value a name of its own, that of an output."""
        for node in self.proto.node:
            for names in (node.input, node.output):
                for k, own in enumerate(names):
                    if own == value:
                        names[k] = name

    def numbers(self, values: Any) -> str:
        """A constant in the type of the graph."""
        given = np.asarray(values)
        if given.dtype == self.dtype:
            return self.constant(given)
        with np.errstate(over="ignore"):
            own = given.astype(self.dtype)
        if given.size and np.isfinite(given).all():
            self._check(own)
        return self.constant(own)

    def _check(self, values: Array) -> None:
        """Refuse numbers that became infinite; without an array of truth values beside them."""
        if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
            raise ValueError(
                f"The model has numbers beyond {self.dtype.name}. Scale the features or targets, "
                "for example with StandardScaler, and train again."
            )

    def integers(self, values: Any) -> str:
        """A constant of int64."""
        return self.constant(np.asarray(values, np.int64))

    def constant(self, values: Array) -> str:
        """A constant as it is: numbers, truth values or strings."""
        tensor = self.proto.initializer.add(name=self.name("c"))
        tensor.dims.extend(values.shape)
        if values.dtype.kind in "OUT":
            tensor.data_type = CODES["str"]
            tensor.string_data.extend(str(value).encode() for value in values.ravel().tolist())
        else:
            tensor.data_type = CODES[str(values.dtype)]
            tensor.raw_data = np.ascontiguousarray(values).tobytes()
        return str(tensor.name)

    def filled(self, shape: tuple[int, int], fill: Callable[[Array], None]) -> str:
        """A constant in the type of the graph, which a function fills in place.

        Where nobody else holds it, the array is gone before its bytes are copied into the graph.
        """
        values = np.empty(shape, self.dtype)
        with np.errstate(over="ignore"):
            fill(values)
        self._check(values)
        tensor = self.proto.initializer.add(name=self.name("c"), data_type=CODES[self.dtype.name])
        tensor.dims.extend(shape)
        raw = values.tobytes()
        del values
        tensor.raw_data = raw
        return str(tensor.name)

    def body(self, name: str) -> Graph:
        """A graph inside of an operator, with constants of its own."""
        import onnx

        inner = Graph(onnx.GraphProto(name=name), self.dtype.name)
        inner._n_names = 100_000 + 1000 * self._n_names  # names differ from those outside
        return inner

    def given(self, name: str, dtype: str, shape: tuple[Any, ...]) -> str:
        """Declare an input."""
        _declare(self.proto.input.add(name=name), dtype, shape)
        return name

    def result(self, name: str, dtype: str, shape: tuple[Any, ...]) -> None:
        """Declare an output."""
        _declare(self.proto.output.add(name=name), dtype, shape)


def _declare(value: Any, dtype: str, shape: tuple[Any, ...]) -> None:
    value.type.tensor_type.elem_type = CODES[dtype]
    dims = value.type.tensor_type.shape
    dims.SetInParent()  # a number has a shape too: an empty one
    for size in shape:
        if isinstance(size, str):
            dims.dim.add(dim_param=size)
        else:
            dims.dim.add(dim_value=size)
