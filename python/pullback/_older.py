"""Older and lesser functions of the main namespace: other spellings of functions.

Each is a line or two over ops, methods and functions of :mod:`pullback.nn.functional` (which is
loaded when one of them is called).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C
from ._overridable import make_overridable as _make_overridable
from ._question import expect_tensor
from .autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "batch_norm_update_stats",
    "bilinear",
    "ccol_indices_copy",
    "col_indices_copy",
    "crow_indices_copy",
    "detach_",
    "dsmm",
    "embedding_renorm_",
    "hsmm",
    "indices_copy",
    "is_distributed",
    "is_same_size",
    "is_signed",
    "native_norm",
    "resize_as_sparse_",
    "row_indices_copy",
    "rrelu",
    "rrelu_",
    "saddmm",
    "spmm",
    "to_dlpack",
    "values_copy",
]

_F: Any = _C._VariableFunctions


# --- questions ------------------------------------------------------------------------------------


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape: :meth:`Tensor.is_same_size`."""
    return input.is_same_size(other)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has numbers below zero: :meth:`Tensor.is_signed`."""
    return input.is_signed()


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is spread over processes: no tensor is."""
    return input.is_distributed()


# --- tensors as they are --------------------------------------------------------------------------


def detach_(input: Tensor) -> Tensor:
    """Takes the tensor off the graph: :meth:`Tensor.detach_`."""
    return input.detach_()


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that shares the tensor's memory: :func:`torch.utils.dlpack.to_dlpack`."""
    from .utils.dlpack import to_dlpack as capsule

    return capsule(tensor)


# --- sparse tensors -------------------------------------------------------------------------------


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one: :func:`torch.mm`."""
    return _F.mm(input, mat2)  # type: ignore[no-any-return]


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one: :func:`torch.mm`."""
    return _F.mm(input, mat2)  # type: ignore[no-any-return]


def hsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix of coordinates and a dense one, of which rows are specified.

    Args:
        input: (m, k), of coordinates.
        mat2: (k, n), dense.

    Returns:
        (m, n), with one sparse dimension: those rows in which ``input`` specifies anything.

    Raises:
        RuntimeError: for other arguments.
    """
    if input.layout is not _C.sparse_coo or mat2.layout is not _C.strided:
        raise RuntimeError(
            f"hsmm: Argument #2: a sparse_coo matrix and a strided one are expected, but got "
            f"{input.layout} and {mat2.layout}"
        )
    rows: Any = input.coalesce().indices()[0].unique()
    values = _F.mm(input, mat2).index_select(0, rows)
    size = (input.shape[0], mat2.shape[1])
    return _F.sparse_coo_tensor(rows.unsqueeze(0), values, size, is_coalesced=True)  # type: ignore[no-any-return]


def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` as a sparse matrix: :func:`torch.sspaddmm`."""
    return _F.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def native_norm(
    input: Tensor, p: Any = 2, dim: Any = (), keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of what a tensor of coordinates specifies: of all, duplicates added up.

    Args:
        input: of coordinates.
        p: the order of the norm; 2 if None.
        dim: none of the dimensions, or all of them.
        keepdim: whether the result has as many dimensions as ``input``.
        dtype: is refused, as it is by PyTorch.

    Raises:
        NotImplementedError: for a tensor of another layout, which :func:`torch.norm` takes, and for
            integers.
        RuntimeError: for some of the dimensions, and for ``dtype``.
    """
    if input.layout is not _C.sparse_coo:
        raise NotImplementedError(
            f"Could not run 'aten::native_norm' with arguments of layout {input.layout}: it takes "
            "tensors of sparse_coo; torch.norm() takes others"
        )
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if dims and {d % max(input.dim(), 1) for d in dims} != set(range(input.dim())):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
            f"contain all dimensions of the input, but got {list(dims)}"
        )
    if dtype is not None:
        raise RuntimeError(f"norm_sparse currently does not support 'dtype' argument, got {dtype}")
    values = input.coalesce().values()
    norm = _F.norm(values.flatten(), 2 if p is None else p)
    return norm.reshape([1] * input.dim()) if keepdim else norm  # type: ignore[no-any-return]


def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Gives a sparse tensor the size of another one of its layout.

    Of coordinates, the numbers of sparse and dense dimensions become those of the other, too. Of
    compressed layouts, the places become those that the other specifies: the values go on in their
    order, and those that are new are zeros (in PyTorch they are not set).

    Raises:
        TypeError: ``the_template`` is no tensor.
        RuntimeError: for tensors that are not sparse, of two layouts, or with history, and sizes
            that cannot be had so.
    """
    expect_tensor("resize_as_sparse_", "the_template", 2, the_template)
    layout = input.layout
    if layout is _C.strided or the_template.layout is not layout:
        raise RuntimeError(
            "resize_as_sparse_: self and the_template must have the same sparse layout, but got: "
            f"self ({layout}) and the_template ({the_template.layout})"
        )
    if layout is not _C.sparse_coo:
        return _resize_as_compressed(input, the_template)
    kinds = (the_template.sparse_dim(), the_template.dense_dim())
    if (input.shape, input.sparse_dim(), input.dense_dim()) != (the_template.shape, *kinds):
        input.sparse_resize_(the_template.shape, *kinds)
    return input


def _resize_as_compressed(input: Tensor, template: Tensor) -> Tensor:
    """:func:`resize_as_sparse_` of rows or columns; aliases keep their size."""
    if input.requires_grad:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
            if input.is_leaf
            else "cannot resize variables that require grad"
        )
    from ._sparse import sparse_compressed_tensor
    from .autograd.graph import increment_version

    by_rows = input.layout in (_C.sparse_csr, _C.sparse_bsr)
    names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    with no_grad():
        old = input.values().flatten()
        values = old.new_zeros(template.values().shape)
        kept = min(old.numel(), values.numel())
        values.view(-1)[:kept] = old[:kept]
        compressed, plain = (getattr(template, name)().clone() for name in names)
        shape, layout = template.shape, input.layout
        input.data = sparse_compressed_tensor(compressed, plain, values, shape, layout=layout)
    increment_version(input)
    return input


def _part_copy(name: str) -> Any:
    def copied(input: Tensor) -> Tensor:
        return getattr(input, name)().clone()  # type: ignore[no-any-return]

    copied.__name__ = copied.__qualname__ = f"{name}_copy"
    copied.__doc__ = f"A copy of what :meth:`Tensor.{name}` shows."
    return copied


values_copy = _part_copy("values")
indices_copy = _part_copy("indices")
crow_indices_copy = _part_copy("crow_indices")
col_indices_copy = _part_copy("col_indices")
ccol_indices_copy = _part_copy("ccol_indices")
row_indices_copy = _part_copy("row_indices")


# --- functions of torch.nn.functional -------------------------------------------------------------


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """The leaky ReLU with random slopes: :func:`torch.nn.functional.rrelu`."""
    from .nn import functional

    _refuse_generator(generator)
    return functional.rrelu(input, lower, upper, training)


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """:func:`rrelu` in place."""
    from .nn import functional

    _refuse_generator(generator)
    return functional.rrelu_(input, lower, upper, training)


def _refuse_generator(generator: Any) -> None:
    if generator is not None and generator is not _C.default_generator:
        raise NotImplementedError("rrelu draws from the default generator only")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x1^T W x2 + b``: :func:`torch.nn.functional.bilinear`."""
    from .nn import functional

    return functional.bilinear(input1, input2, weight, bias)


def embedding_renorm_(
    input: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Scales the rows of a table that are looked up, and whose norm is too great, down to it.

    Args:
        input: the table, which is written to.
        indices: the rows that are looked up.
        max_norm: the greatest norm.
        norm_type: its order.
    """
    from .nn import functional

    functional._renormalise_rows(input, indices, max_norm, norm_type)
    return input


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Moves running statistics towards those of a batch, and gives these.

    Args:
        input: (n, c, ...).
        running_mean: (c,), written to.
        running_var: (c,), written to, by the variance with Bessel's correction.
        momentum: the weight of the batch.

    Returns:
        The mean and the variance of each channel, without the correction.
    """
    dims = [dim for dim in range(input.dim()) if dim != 1]
    count = input.numel() // max(input.shape[1], 1)
    var, mean = _F.var_mean(input, dims, correction=0)
    with no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (count / max(count - 1, 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, var


_make_overridable(globals(), __all__)
