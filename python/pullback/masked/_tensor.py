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
from . import _pattern

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
    if data.layout is not _C.strided and data.layout not in _pattern.LAYOUTS:
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
        if requires_grad and not data.dtype.is_floating_point:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients, got "
                f"{data.dtype}"
            )
        data, mask = _pattern.matched(data.detach().clone(), mask.detach().clone())
        return cls._made(data, mask, requires_grad)

    @classmethod
    def _made(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        """Makes one that holds these parts themselves."""
        _check(data, mask)
        is_strided = data.layout is _C.strided
        made: MaskedTensor = _C.TensorBase._make_wrapper_subclass(
            cls,
            data.size(),
            # (The wrapper's own memory is not read: that of a sparse one may be a single element.)
            strides=data.stride() if is_strided else [0] * data.dim(),
            storage_offset=data.storage_offset() if is_strided else 0,
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
            data = unwrap(self)
            mask = self._masked_mask
            return _pattern.filled(mask, data) if _pattern.is_pattern(mask) else data

    def get_mask(self) -> Tensor:
        """The mask, true where an element counts."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """The data with ``value`` where it is masked out, as a plain tensor."""
        whole = self.to_dense()
        with _C.DisableTorchFunctionSubclass():
            return unwrap(whole).masked_fill(~whole._masked_mask, value)

    def _in_layout(self, layout: Any) -> MaskedTensor:
        if self.layout is layout:
            return self
        mask = _pattern.pattern_of(self._masked_mask, layout)
        with _C.DisableTorchFunctionSubclass():
            data = unwrap(self)
            if self.layout is not _C.strided:
                data = _pattern.scattered(self._masked_mask, data)
            return wrap(data if layout is _C.strided else _pattern.gathered(mask, data), mask)

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> MaskedTensor:
        """The tensor with strided data and mask."""
        made: Any = self._in_layout(_C.strided)
        converted: MaskedTensor = made if dtype is None else made.to(dtype)
        return converted

    def to_sparse(self) -> MaskedTensor:  # type: ignore[override]
        """The elements that count, in the coordinate format."""
        return self._in_layout(_C.sparse_coo)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> MaskedTensor:  # type: ignore[override]
        """The elements of a matrix that count, in compressed rows."""
        return self._in_layout(_C.sparse_csr)

    @property
    def layout(self) -> Any:
        """The layout of data and mask."""
        return self._masked_data.layout

    def _refuse_sparse(self) -> None:
        if self.layout is not _C.strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")

    def is_contiguous(self, memory_format: Any = _C.contiguous_format) -> bool:
        """Whether the data lies in this order in memory."""
        self._refuse_sparse()
        return self._masked_data.is_contiguous(memory_format=memory_format)

    def contiguous(self, memory_format: Any = _C.contiguous_format) -> Tensor:
        """The tensor with data in this memory format."""
        self._refuse_sparse()
        return super().contiguous(memory_format=memory_format)

    def _is_any_true(self) -> MaskedTensor:
        """Whether an element that counts is true; the data is boolean."""
        if self.dtype is not _C.bool:
            raise ValueError(f"expected a boolean tensor, got {self.dtype}")
        flags = _pattern.values(self._masked_data) & _pattern.values(self._masked_mask)
        return MaskedTensor._made(flags.any(), _VF.ones([], dtype=_C.bool))

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
        if _pattern.is_pattern(mask):
            data = _pattern.scattered(mask, _pattern.values(data))
            mask = _pattern.pattern_of(mask, _C.strided)
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
        return wrap(_within(mask, grad), mask)


def _within(mask: Tensor, grad: Tensor) -> Tensor:
    """The elements of a gradient (of a sparse mask: the values), with zeros where none counts."""
    plain = unwrap(grad) if isinstance(grad, MaskedTensor) else grad
    has_pattern = isinstance(grad, MaskedTensor) and _pattern.is_pattern(grad._masked_mask)
    if _pattern.is_pattern(mask) and not has_pattern:
        plain = _pattern.gathered(mask, plain)
    elif has_pattern and not _pattern.is_pattern(mask):
        plain = _pattern.scattered(grad._masked_mask, plain)  # type: ignore[attr-defined]
    return _VF.where(_pattern.values(mask), plain, plain.new_zeros([]))


def _joined(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Data, or the values of a sparse mask's elements, with the mask, without history."""
    is_pattern = _pattern.is_pattern(mask)
    return MaskedTensor._made(_pattern.filled(mask, data) if is_pattern else data, mask)


class _Unwrap(Function):
    """The data of a masked tensor, of a sparse one its values; its gradient is masked again."""

    @staticmethod
    def forward(source: MaskedTensor) -> Tensor:
        return _pattern.values(source._masked_data).detach()

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
    """Data with a mask (values with a pattern); where it is masked out, its gradient is zero."""

    @staticmethod
    def forward(data: Tensor, mask: Tensor) -> MaskedTensor:
        return _joined(data, mask)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mask = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _within(ctx.mask, grad), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return wrap(tangent, ctx.mask)


class _AsMasked(_Wrap):
    """Copies of data and mask; the gradient of the data is a masked tensor."""

    @staticmethod
    def forward(data: Tensor, mask: Tensor) -> MaskedTensor:
        return MaskedTensor._made(*_pattern.matched(data.clone(), mask.clone()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mask = output._masked_mask

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _with_mask(ctx.mask, grad), None


def unwrap(source: MaskedTensor) -> Tensor:
    """The data (the values of sparse data), with the history and the tangent of the tensor."""
    plain: Tensor = _Unwrap.apply(source)
    return plain


def wrap(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Data (the values of a pattern) with a mask, with the history and the tangent of the data."""
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
