"""Shapes, dtypes and strides of all results of a graph, found by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import Tensor, strided
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The metadata of a tensor, without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _metadata_of(tensor: Tensor) -> TensorMetadata:
    stride = tensor.stride() if tensor.layout is strided else ()
    return TensorMetadata(tensor.shape, tensor.dtype, tensor.requires_grad, stride, None, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and keeps what each result looks like in ``node.meta['tensor_meta']``."""

    def run_node(self, n: Node) -> Any:
        """Runs one node and notes what it gives."""
        result = super().run_node(n)
        is_tensor = False

        def note(value: Any) -> Any:
            nonlocal is_tensor
            if isinstance(value, Tensor):
                is_tensor = True
                return _metadata_of(value)
            return value

        meta = map_aggregate(result, note)
        if is_tensor:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with these inputs."""
        return super().run(*args)
