"""Whole matrices of derivatives: ``jacrev`` by rows, ``jacfwd`` by columns, ``hessian`` by both.

A row is the product of a unit vector with the Jacobian, a column that of the Jacobian with one;
``vmap`` computes all of them at once, or some at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

from .. import _C
from .._vmap import vmap
from ..autograd.functional.matrix import _construct_standard_basis_for
from ..utils._pytree import tree_flatten, tree_map
from ._argument import check_real, chosen, of_chosen
from ._forward import pushforward_of
from ._reverse import pullback_of

P = ParamSpec("P")

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ._argument import Argnums

    Rows = Callable[[list[Tensor]], list[Tensor]]
    """From a vector for each output to the products for each input."""


def jacrev(
    func: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[P, Any]:
    """The function that gives the Jacobian of ``func`` in reverse mode.

    This costs about one reverse pass per element of the outputs: use it where there are fewer
    outputs than inputs, and :func:`jacfwd` where there are more.

    Args:
        func: returns a tree of real tensors.
        argnums: which positional argument to differentiate by, a tree of real tensors; or a tuple
            of several.
        has_aux: whether ``func`` returns a pair of its output and a tree of other tensors.
        chunk_size: compute so many rows at a time, to save memory; 1 does without ``vmap``.
        _preallocate_and_copy: write chunks into the results, instead of joining them at the end:
            this takes less memory.

    Returns:
        A function of the same arguments. It gives a tree like the output, of trees like the
        argument (or tuples of them), of tensors of shape ``output.shape + input.shape``; with
        ``has_aux`` the pair ``(jacobian, aux)``. The dtype is the one of the input.

    Raises:
        ValueError: for a ``chunk_size`` below 1.
        RuntimeError: (by the function returned) for complex tensors, and as :func:`vjp`.

    Example:
        >>> import pullback as torch
        >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        inputs, input_spec = tree_flatten(chosen(args, argnums))
        check_real(inputs, "jacrev", "input")
        function = of_chosen(func, args, argnums, kwargs)
        output, pull, *aux = pullback_of(function, chosen(args, argnums), has_aux)
        outputs, output_spec = tree_flatten(output)
        check_real(outputs, "jacrev", "output")

        def rows(vectors: list[Tensor]) -> list[Tensor]:
            return tree_flatten(pull(output_spec.unflatten(vectors)))[0]

        stacks = _stacked_rows(rows, outputs, inputs, chunk_size, _preallocate_and_copy)
        sizes = [tensor.numel() for tensor in outputs]
        blocks = [
            [
                part.reshape(tensor.shape + point.shape)
                for part, tensor in zip(stack.split(sizes), outputs, strict=True)
            ]
            for stack, point in zip(stacks, inputs, strict=True)
        ]
        found = output_spec.unflatten(
            input_spec.unflatten(row) for row in zip(*blocks, strict=True)
        )
        return (found, aux[0]) if has_aux else found

    return jacobian


def _stacked_rows(
    rows: Rows,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    chunk_size: int | None,
    preallocates: bool,
) -> list[Tensor]:
    """For each input all rows of the Jacobian, one after the other."""
    sizes = tuple(tensor.numel() for tensor in outputs)
    total = sum(sizes)
    basis = [
        part.view((total, *tensor.shape))
        for part, tensor in zip(
            _construct_standard_basis_for(tuple(outputs), sizes), outputs, strict=True
        )
    ]
    length = chunk_size or max(total, 1)
    if total <= length and length != 1:
        return _chunk(rows, basis)
    starts = range(0, total, length)
    chunks = ([part[start : start + length] for part in basis] for start in starts)
    if preallocates:
        return _written(rows, chunks, inputs, total)
    found = [_chunk(rows, chunk) for chunk in chunks]
    if not found:
        return [point.new_zeros((0, *point.shape)) for point in inputs]
    cat = _C._VariableFunctions.cat
    return [cat(list(parts)) for parts in zip(*found, strict=True)]


def _chunk(rows: Rows, basis: list[Tensor]) -> list[Tensor]:
    if basis[0].shape[0] == 1:
        found = rows([part.squeeze(0) for part in basis])
        return [product.unsqueeze(0) for product in found]
    products: list[Tensor] = vmap(rows)(basis)
    return products


def _written(rows: Rows, chunks: Any, inputs: Sequence[Tensor], total: int) -> list[Tensor]:
    results = [point.new_zeros((total, *point.shape)) for point in inputs]
    start = 0
    for chunk in chunks:
        length = chunk[0].shape[0]
        for result, part in zip(results, _chunk(rows, chunk), strict=True):
            result[start : start + length].copy_(part)
        start += length
    return results


def jacfwd(
    func: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[P, Any]:
    """The function that gives the Jacobian of ``func`` in forward mode.

    ``func`` runs once, under ``vmap``, with a tangent for each element of the inputs: use it where
    there are fewer inputs than outputs, and :func:`jacrev` where there are more.

    Args:
        func: returns a tree of real tensors.
        argnums: which positional argument to differentiate by, a tree of real tensors; or a tuple
            of several.
        has_aux: whether ``func`` returns a pair of its output and a tree of other tensors.
        randomness: what random ops do: see :func:`vmap`.

    Returns:
        A function of the same arguments, as that of :func:`jacrev`. The dtype is the one of the
        output.

    Raises:
        RuntimeError: (by the function returned) for complex tensors, and as :func:`jvp`.
        ValueError: for dtypes without derivatives.

    Example:
        >>> import pullback as torch
        >>> torch.func.jacfwd(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        primals = chosen(args, argnums)
        inputs, input_spec = tree_flatten(primals)
        for value in inputs:
            if not isinstance(value, _C.TensorBase):
                raise RuntimeError(f"jacfwd: Expected all inputs to be tensors, got {type(value)}")
        check_real(inputs, "jacfwd", "input")
        function = of_chosen(func, args, argnums, kwargs)
        sizes = [tensor.numel() for tensor in inputs]

        def column(directions: list[Tensor]) -> Any:
            pairs = zip(directions, inputs, strict=True)
            vector = input_spec.unflatten(d.view(tensor.shape) for d, tensor in pairs)
            _, product, *aux = pushforward_of(function, primals, vector, False, has_aux)
            return (product, aux[0]) if has_aux else product

        basis = list(_construct_standard_basis_for(tuple(inputs), tuple(sizes)))
        columns = vmap(column, randomness=randomness)(basis)
        columns, aux = columns if has_aux else (columns, None)
        products, output_spec = tree_flatten(columns)
        check_real(products, "jacfwd", "output")
        found = output_spec.unflatten(
            input_spec.unflatten(_blocks(product, inputs, sizes)) for product in products
        )
        # All tangents have the same values beside them.
        return (found, tree_map(lambda tensor: tensor[0], aux)) if has_aux else found

    return jacobian


def _blocks(columns: Tensor, inputs: Sequence[Tensor], sizes: list[int]) -> list[Tensor]:
    """The blocks of one output, from its tangents."""
    shape = columns.shape[1:]
    return [
        part.movedim(0, -1).reshape(shape + point.shape)
        for part, point in zip(columns.split(sizes), inputs, strict=True)
    ]


def hessian(func: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """The function that gives the Hessian of ``func``: ``jacfwd(jacrev(func))``.

    Args:
        func: returns a tree of real tensors.
        argnums: which positional argument to differentiate by, or a tuple of several.

    Returns:
        A function of the same arguments. It gives a tree like the output, of trees like the
        argument, of trees like the argument, of tensors of shape
        ``output.shape + input_i.shape + input_j.shape``.

    Raises:
        RuntimeError: (by the function returned) as :func:`jacrev` and :func:`jacfwd`.

    Example:
        >>> import pullback as torch
        >>> torch.func.hessian(lambda x: x[0] ** 2 * x[1])(torch.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
