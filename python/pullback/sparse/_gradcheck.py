"""``gradcheck`` with sparse tensors for inputs and outputs: the function of PyTorch's decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._tensor import Tensor


def _is_sparse(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout is not _C.strided


def _specified(tensor: Tensor) -> Tensor:
    """A sparse tensor of the same elements, all of which are specified."""
    layout, dense_dim = tensor.layout, tensor.dense_dim()
    # (No number: elements that are zero are specified too.)
    ones = _C._VariableFunctions.ones(tensor.shape, dtype=_C.bool)
    if layout is _C.sparse_coo:
        mask = ones.to_sparse(tensor.sparse_dim())
    else:
        batch = tensor.dim() - 2 - dense_dim
        has_blocks = layout in (_C.sparse_bsr, _C.sparse_bsc)
        blocks = tuple(tensor.values().shape[batch + 1 : batch + 3]) if has_blocks else None
        mask = ones.to_sparse(layout=layout, blocksize=blocks, dense_dim=dense_dim)
    filled = tensor.detach().to_dense().sparse_mask(mask)
    return filled.requires_grad_(tensor.requires_grad)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """The same check for functions of sparse tensors, which may give sparse ones.

    With ``masked=False``, the default, derivatives are those of all elements: an input gets all of
    its elements specified before. With ``masked=True`` they are those of the specified elements. A
    sparse output is checked as the strided tensor of its elements.

    Args:
        gradcheck: the function to extend.
    """

    @functools.wraps(gradcheck)
    def check(func: Callable[..., Any], inputs: Any, **options: Any) -> bool:
        """``gradcheck`` of a function of sparse tensors."""
        masked = bool(options.setdefault("masked", False))

        @functools.wraps(func)
        def strided(*args: Any, **kwargs: Any) -> Any:
            outputs = func(*args, **kwargs)
            if isinstance(outputs, (tuple, list)):
                return tuple(to_strided(output) for output in outputs)
            return to_strided(outputs)

        def to_strided(output: Any) -> Any:
            return output.to_dense(masked_grad=masked) if _is_sparse(output) else output

        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        if not masked and any(map(_is_sparse, given)):
            # Of what is specified everywhere, all elements are checked as specified ones.
            given = tuple(_specified(x) if _is_sparse(x) else x for x in given)
            options["masked"] = True
        return gradcheck(strided, given, **options)

    return check
