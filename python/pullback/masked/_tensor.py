"""``MaskedTensor``: a tensor together with a mask, true where an element counts.

It is a wrapper subclass: to the library it is a tensor without elements of its own, whose ops
``_dispatch`` computes on the data and the mask that it holds. Gradients cross into the plain data
and out of it by two custom functions, :class:`_Unwrap` and :class:`_Wrap`, between which everything
is ordinary: so whatever has a derivative has one here. Invariant: data and mask have the shape,
and the data the dtype, of the tensor; neither requires grad.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor
from ..autograd.function import Function

_VF = _C._VariableFunctions
_DTYPES = frozenset(
    {
        _C.bool,
        _C.float16,
        _C.float32,
        _C.float64,
        _C.int8,
        _C.int16,
        _C.int32,
        _C.int64,
    }
)


def is_masked_tensor(obj: object, /) -> bool:
    """Whether it is a :class:`MaskedTensor`.

    Example:
        >>> import pullback as torch
        >>> torch.masked.is_masked_tensor(torch.zeros(2))
        False
    """
    return isinstance(obj, MaskedTensor)


def _check(data: object, mask: object) -> None:
    """Refuses what cannot be the parts of a masked tensor."""
    if is_masked_tensor(data) or not isinstance(data, Tensor):
        raise TypeError(f"data must be a Tensor, not {type(data).__name__}")
    if is_masked_tensor(mask) or not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a Tensor, not {type(mask).__name__}")
    if data.layout != mask.layout:
        raise TypeError(
            f"data and mask must have the same layout. Got {data.layout} and {mask.layout}"
        )
    kinds = type(data.detach()), type(mask.detach())
    if kinds[0] is not kinds[1]:
        raise TypeError(f"data and mask must have the same type. Got {kinds[0]} and {kinds[1]}")
    if data.layout is not _C.strided:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not _C.bool:
        raise TypeError(f"mask must have dtype bool. Got {mask.dtype}")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(): {data.dim()} and {mask.dim()}")
    if data.size() != mask.size():
        raise ValueError(
            f"data.size() must equal mask.size(): {tuple(data.size())} and {tuple(mask.size())}"
        )


def _warn(data: Tensor) -> None:
    warnings.warn(
        "The PyTorch API of MaskedTensors is in prototype stage and will change in the near "
        "future.",
        UserWarning,
        stacklevel=4,
    )
    if data.requires_grad:
        warnings.warn(
            "It is not recommended to create a MaskedTensor with a tensor that requires_grad: "
            "no gradient reaches it. Use data.detach().clone(), or as_masked_tensor().",
            UserWarning,
            stacklevel=4,
        )


class MaskedTensor(Tensor):
    """A tensor with a mask that travels with it.

    Elementwise operations keep the mask; those on two masked tensors need equal masks. Operations
    on shapes are applied to data and mask alike. Reductions pass over what is masked out, and
    count where there was an element to count. Gradients are masked tensors too.

    Args:
        data: the elements, copied; floating-point numbers but ``bfloat16``, signed integers, or
            ``bool``.
        mask: a boolean tensor of the same shape, true where an element counts; copied.
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: for what are no such tensors.
        ValueError: for different shapes.

    Example:
        >>> import pullback as torch
        >>> x = torch.masked.masked_tensor(torch.tensor([1.0, 9.0]), torch.tensor([True, False]))
        >>> x.sum().item()
        1.0
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        """Makes one from copies of its parts, with a warning that the interface may change."""
        _check(data, mask)
        _warn(data)
        return cls._made(data.detach().clone(), mask.detach().clone(), requires_grad)

    @classmethod
    def _made(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        """Makes one that holds these parts themselves."""
        _check(data, mask)
        made: MaskedTensor = _C.TensorBase._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=data.device,
        )
        made._masked_data, made._masked_mask = data.detach(), mask
        if requires_grad:
            made._masked_gradient(True)
        return made

    def _masked_gradient(self, requires_grad: bool = True) -> None:
        """Makes it a leaf whose gradient has its mask."""
        with _C.DisableTorchFunctionSubclass():
            Tensor.requires_grad_(self, requires_grad)
            if requires_grad:
                Tensor.register_hook(self, functools.partial(_with_mask, self._masked_mask))

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes the calls that ``_dispatch`` knows; others are decomposed into ops first."""
        from ._dispatch import dispatch_call

        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            return dispatch_call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes ops, below autograd."""
        from ._dispatch import dispatch_op

        return dispatch_op(func, args, kwargs or {})

    def get_data(self) -> Tensor:
        """The data, masked out or not, as a plain tensor; its gradient comes back masked."""
        with _C.DisableTorchFunctionSubclass():
            return unwrap(self)

    def get_mask(self) -> Tensor:
        """The mask, true where an element counts."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """The data with ``value`` where it is masked out, as a plain tensor."""
        with _C.DisableTorchFunctionSubclass():
            return unwrap(self).masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are sparse tensors in the coordinate format."""
        return self.layout is _C.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether data and mask are sparse tensors in compressed rows."""
        return self.layout is _C.sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are sparse tensors."""
        return self.is_sparse_coo() or self.is_sparse_csr()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        data, mask = self._masked_data, self._masked_mask
        if data.dim() == 0:
            return f"MaskedTensor({_shown(data, mask)}, {mask.item()})"
        lines = "\n".join(f"  {line}" for line in _lines(data, mask))
        return f"MaskedTensor(\n{lines}\n)"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self._masked_data, self._masked_mask, self.requires_grad)

    def __deepcopy__(self, memo: dict[Any, Any]) -> MaskedTensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        if id(self) not in memo:
            parts = self._masked_data.clone(), self._masked_mask.clone()
            memo[id(self)] = _rebuilt(type(self), *parts, self.requires_grad)
        copied: MaskedTensor = memo[id(self)]
        return copied


def _rebuilt(
    cls: type[MaskedTensor], data: Tensor, mask: Tensor, requires_grad: bool
) -> MaskedTensor:
    return cls._made(data, mask, requires_grad)


def _shown(data: Tensor, mask: Tensor) -> str:
    if not mask.item():
        return "--"
    value = data.item()
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _lines(data: Tensor, mask: Tensor) -> Iterator[str]:
    """The lines of the data between brackets, with dashes where it is masked out."""
    if data.dim() == 1:
        shown = [_shown(one, flag) for one, flag in zip(data, mask, strict=True)]
        width = max([8 if text == "--" else len(text) for text in shown], default=0)
        parts = [text.rjust(width) if text == "--" else text for text in shown]
        yield f"[{', '.join(parts)}]"
        return
    yield "["
    for index in range(len(data)):
        rows = [f"  {line}" for line in _lines(data[index], mask[index])]
        if index < len(data) - 1:
            rows[-1] += ","
        yield from rows
    yield "]"


# --- into the plain data and out of it ----------------------------------------------------------


def _with_mask(mask: Tensor, grad: Tensor) -> MaskedTensor:
    """A gradient with the mask of what it is of: views put theirs into plain zeros."""
    with _C.DisableTorchFunctionSubclass():
        plain = unwrap(grad) if isinstance(grad, MaskedTensor) else grad
        return wrap(_VF.where(mask, plain, plain.new_zeros([])), mask)


class _Unwrap(Function):
    """The data of a masked tensor; its gradient is masked again."""

    @staticmethod
    def forward(source: MaskedTensor) -> Tensor:
        return source._masked_data.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mask = inputs[0]._masked_mask

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad if is_masked_tensor(grad) else wrap(grad, ctx.mask)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return unwrap(tangent) if isinstance(tangent, MaskedTensor) else tangent


class _Wrap(Function):
    """Data with a mask; where it is masked out, its gradient is zero."""

    @staticmethod
    def forward(data: Tensor, mask: Tensor) -> MaskedTensor:
        return MaskedTensor._made(data, mask)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mask = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        plain = unwrap(grad) if isinstance(grad, MaskedTensor) else grad
        return _VF.where(ctx.mask, plain, plain.new_zeros([])), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return wrap(tangent, ctx.mask)


class _AsMasked(_Wrap):
    """Copies of data and mask; the gradient of the data is a masked tensor."""

    @staticmethod
    def forward(data: Tensor, mask: Tensor) -> MaskedTensor:
        return MaskedTensor._made(data.clone(), mask.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _with_mask(ctx.mask, grad), None


def unwrap(source: MaskedTensor) -> Tensor:
    """The data as a plain tensor, with the history and the tangent that the masked tensor has."""
    plain: Tensor = _Unwrap.apply(source)
    return plain


def wrap(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Data with a mask, with the history and the tangent that the data has."""
    made: MaskedTensor = _Wrap.apply(data, mask)
    return made


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A :class:`MaskedTensor` of copies of ``data`` and ``mask``, which has no history.

    Args:
        data: the elements.
        mask: a boolean tensor of the same shape, true where an element counts.
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: for what are no tensors, a mask that is not boolean, or a dtype that masked
            tensors do not have.
        ValueError: for different shapes.

    Example:
        >>> import pullback as torch
        >>> torch.masked.masked_tensor(torch.tensor([1, 9]), torch.tensor([True, False]))
        MaskedTensor(
          [1,       --]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A :class:`MaskedTensor` of ``data`` and ``mask``, through which gradients reach ``data``.

    The gradient that arrives at ``data`` is a masked tensor.

    Args:
        data: the elements.
        mask: a boolean tensor of the same shape, true where an element counts.

    Raises:
        TypeError: for what are no tensors, a mask that is not boolean, or a dtype that masked
            tensors do not have.
        ValueError: for different shapes.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 9.0], requires_grad=True)
        >>> torch.masked.as_masked_tensor(x, torch.tensor([True, False])).prod().backward()
        >>> x.grad
        MaskedTensor(
          [  1.0000,       --]
        )
    """
    _check(data, mask)
    made: MaskedTensor = _AsMasked.apply(data, mask)
    return made
