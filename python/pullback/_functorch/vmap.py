"""``vmap`` and its parts, under the names of PyTorch's module.

The parts take flat lists of arguments and the dimension of each that counts examples; what they do
is in :mod:`pullback.func`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _C, _transform
from .. import Tensor as Tensor
from .._levels import _add_batch_dim as _add_batch_dim
from .._levels import _remove_batch_dim, is_batchedtensor
from .._levels import _unwrap_batched as _unwrap_tensor
from .._vmap import vmap
from ..autograd.graph import disable_saved_tensors_hooks
from ..func._vmap import (
    Inputs,
    _batch_size,
    _output_dims,
    batched_function,
    check_out_dims,
    check_randomness,
    name_of,
)
from ..utils._pytree import TreeSpec, tree_unflatten
from ..utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from ..utils._pytree import tree_flatten as tree_flatten

__all__ = ["get_chunk_sizes", "vmap"]

in_dims_t = int | tuple[Any, ...]
out_dims_t = int | tuple[int, ...]

_get_name = name_of
_check_randomness_arg = check_randomness


def doesnt_support_saved_tensors_hooks(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function in which hooks on saved tensors are refused."""
    message = (
        "torch.func transforms don't yet support saved tensor hooks. Please open an issue with "
        "your use case."
    )

    @functools.wraps(f)
    def without_hooks(*args: Any, **kwargs: Any) -> Any:
        with disable_saved_tensors_hooks(message):
            return f(*args, **kwargs)

    return without_hooks


@contextlib.contextmanager
def vmap_increment_nesting(batch_size: int, randomness: str) -> Iterator[int]:
    """A level for as long as the context lasts; gives its number."""
    with _transform.batch(batch_size, randomness) as level:
        yield level


def lazy_load_decompositions() -> None:
    """Nothing is loaded: batching rules are part of the library."""


# ---- inputs ----


def _validate_and_get_batch_size(flat_in_dims: list[int | None], flat_args: list[Any]) -> int:
    """How many examples there are.

    Raises:
        ValueError: if nothing says so, or the arguments differ.
    """
    return _batch_size(flat_args, flat_in_dims)


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The arguments taken apart: how many examples, the dimensions, the leaves, their structure.

    Raises:
        ValueError: if ``in_dims`` does not fit the arguments.
    """
    inputs = Inputs.of(func, in_dims, args)
    return inputs.size, inputs.dims, inputs.leaves, inputs.spec


def _create_batched_inputs(
    flat_in_dims: list[int | None], flat_args: list[Any], vmap_level: int, args_spec: TreeSpec
) -> Any:
    """The arguments as one example of a level."""
    leaves = (
        arg if dim is None else _add_batch_dim(arg, dim, vmap_level)
        for dim, arg in zip(flat_in_dims, flat_args, strict=True)
    )
    return tree_unflatten(leaves, args_spec)


def wrap_batched(args: Any, bdims: Any, level: int) -> Any:
    """A tree of arguments as one example of a level; ``bdims`` as the ``in_dims`` of ``vmap``."""
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(bdims, spec)
    if dims is None:
        raise AssertionError(f"the dimensions {bdims} do not fit arguments of structure {spec}")
    return _create_batched_inputs(dims, leaves, level, spec)


# ---- outputs ----


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """The values behind a tree of tensors of a level, and the tree of their batch dimensions."""
    leaves, spec = tree_flatten(args)
    if not leaves:
        return args, ()
    pairs = [
        _unwrap_tensor(leaf, level) if isinstance(leaf, _C.TensorBase) else (leaf, None)
        for leaf in leaves
    ]
    values = tree_unflatten([value for value, _ in pairs], spec)
    return values, tree_unflatten([dim for _, dim in pairs], spec)


def _num_outputs(batched_outputs: Any) -> int:
    """The number of outputs of a function: one, unless it returned a tuple."""
    return len(batched_outputs) if isinstance(batched_outputs, tuple) else 1


def _as_tuple(
    value: Any, num_elements: int, error_message_lambda: Callable[[], str]
) -> tuple[Any, ...]:
    """A value for each of so many elements: a tuple of them, or one that all share.

    Raises:
        ValueError: for a tuple of another length.
    """
    if not isinstance(value, tuple):
        return (value,) * num_elements
    if len(value) != num_elements:
        raise ValueError(error_message_lambda())
    return value


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """An output with the dimension of its examples, or as it is where ``out_dim`` is None."""
    if out_dim is None:
        if isinstance(batched_output, Tensor) and is_batchedtensor(batched_output):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(batched_output)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """The outputs of a level with the dimensions of their examples.

    Raises:
        ValueError: if ``out_dims`` does not fit them, or one that has such a dimension is no
            tensor.
    """
    leaves, spec = tree_flatten(batched_outputs)
    dims = _output_dims(func, batched_outputs, spec, out_dims)
    name = name_of(func)
    return tree_unflatten(
        [
            _maybe_remove_batch_dim(name, leaf, vmap_level, batch_size, dim)
            for leaf, dim in zip(leaves, dims, strict=True)
        ],
        spec,
    )


def _check_int_or_none(x: Any, func: Callable[..., Any], out_dims: Any) -> None:
    """Checks one dimension of ``out_dims``.

    Raises:
        ValueError: for anything but an int or None.
    """
    if x is not None and not isinstance(x, int):
        check_out_dims(func, out_dims)


def _check_out_dims_is_int_or_int_pytree(out_dims: Any, func: Callable[..., Any]) -> None:
    """Checks ``out_dims`` before there are outputs.

    Raises:
        ValueError: for anything but a tree of ints and None.
    """
    check_out_dims(func, out_dims)


# ---- the whole ----


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """``vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)``."""
    return batched_function(func, in_dims, out_dims, randomness, chunk_size)(*args, **kwargs)


def _flat_vmap(
    func: Callable[..., Any],
    batch_size: int,
    flat_in_dims: list[int | None],
    flat_args: list[Any],
    args_spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """The outputs of ``func`` on unwrapped arguments."""
    with vmap_increment_nesting(batch_size, randomness) as level:
        inputs = _create_batched_inputs(flat_in_dims, flat_args, level, args_spec)
        outputs = func(*inputs, **kwargs)
        return _unwrap_batched(outputs, out_dims, level, batch_size, func)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """``vmap`` that leaves outputs as they come: a function of the values and their dimensions.

    Args:
        func: as for :func:`pullback.vmap`.
        in_dims: the dimension of each argument that counts examples; None for all the same.
        batch_size: how many examples there are.
        randomness: as for :func:`pullback.vmap`.

    Returns:
        A function that gives the outputs and the tree of their batch dimensions.
    """

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with vmap_increment_nesting(batch_size, randomness) as level:
            outputs = func(*wrap_batched(args, in_dims, level), **kwargs)
            return unwrap_batched(outputs, level)

    return inner


# ---- chunks ----


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """The chunks of ``chunk_size`` that divide ``total_elems``; the last takes the rest."""
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])


def _get_chunked_inputs(
    flat_args: list[Any],
    flat_in_dims: list[int | None],
    batch_size: int,
    chunk_size: int | None,
) -> Iterable[tuple[Any, ...]]:
    """The arguments of each chunk; those that all examples share are in every one."""
    sizes = (batch_size,) if chunk_size is None else get_chunk_sizes(batch_size, chunk_size)
    columns = [
        [arg] * len(sizes) if dim is None else arg.split(list(sizes), dim)
        for arg, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return zip(*columns, strict=True)


def _flatten_chunks_output(chunks_output_: list[Any]) -> tuple[list[tuple[Any, ...]], TreeSpec]:
    """For each output its values in all chunks, and the structure of a chunk's outputs."""
    flat = [tree_flatten(output) for output in chunks_output_]
    return list(zip(*(leaves for leaves, _ in flat), strict=True)), flat[0][1]


def _concat_chunked_outputs(
    out_dims: Any, arg_spec: TreeSpec, flat_output_chunks: list[Any]
) -> list[Tensor]:
    """The outputs of the chunks concatenated; the list of the caller is cleared."""
    dims = _broadcast_to_and_flatten(out_dims, arg_spec)
    if dims is None or len(dims) != len(flat_output_chunks):
        raise AssertionError(f"out_dims {out_dims} do not fit outputs of structure {arg_spec}")
    results = []
    for number, dim in enumerate(dims):
        parts = flat_output_chunks[number]
        # (Outputs that are the same for all examples are the same in all chunks.)
        results.append(parts[0] if dim is None else _C._VariableFunctions.cat(list(parts), dim))
        flat_output_chunks[number] = None
    return results


def _chunked_vmap(
    func: Callable[..., Any],
    flat_in_dims: list[int | None],
    chunks_flat_args: Iterable[tuple[Any, ...]],
    args_spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """The outputs of chunks, computed one after the other and put together."""
    state = _C.default_generator.get_state() if randomness == "same" else None
    outputs = []
    for chunk in chunks_flat_args:
        if state is not None:
            _C.default_generator.set_state(state)
        leaves = list(chunk)
        size = _batch_size(leaves, flat_in_dims)
        outputs.append(
            _flat_vmap(func, size, flat_in_dims, leaves, args_spec, out_dims, randomness, **kwargs)
        )
    flat, spec = _flatten_chunks_output(outputs)
    return tree_unflatten(_concat_chunked_outputs(out_dims, spec, flat), spec)
