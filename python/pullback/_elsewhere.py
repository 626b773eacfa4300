"""Methods of tensors about devices, layouts and kinds of numbers that this build does not have.

Questions get their true answer, what would make such a tensor is an error that says why. What only
has another name elsewhere is here too.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ._tensor import Tensor

_QUANTIZED = "there are no quantized tensors; compute in float32, bfloat16 or float16"
_REFUSED: dict[str, tuple[type[Exception], str]] = {
    "int_repr": (NotImplementedError, _QUANTIZED),
    "ipu": (RuntimeError, "PyTorch is not linked with support for ipu devices; use the CPU"),
    "mtia": (AssertionError, "Torch not compiled with MTIA enabled; use the CPU"),
    "q_per_channel_axis": (NotImplementedError, _QUANTIZED),
    "q_per_channel_scales": (NotImplementedError, _QUANTIZED),
    "q_per_channel_zero_points": (NotImplementedError, _QUANTIZED),
    "q_scale": (NotImplementedError, _QUANTIZED),
    "q_zero_point": (NotImplementedError, _QUANTIZED),
    "qscheme": (NotImplementedError, _QUANTIZED),
    "record_stream": (RuntimeError, "the memory of the CPU belongs to no stream; leave it out"),
    "to_mkldnn": (NotImplementedError, "oneDNN is not part of this build; use the tensor itself"),
    "to_padded_tensor": (
        NotImplementedError,
        "it is of nested tensors, and this is none; pad a list with nn.utils.rnn.pad_sequence",
    ),
    "xpu": (AssertionError, "Torch not compiled with XPU enabled; use the CPU"),
}


def _refuse(name: str) -> NoReturn:
    error, reason = _REFUSED[name]
    raise error(f"Tensor.{name} is not available: {reason}")


def _refusal(name: str) -> Any:
    """A method that raises its error, with the parameters that PyTorch's has."""

    def bare(self: Tensor) -> NoReturn:
        _refuse(name)

    def streaming(self: Tensor, s: Any) -> NoReturn:
        _refuse(name)

    def converting(self: Tensor, dtype: Any = None) -> NoReturn:
        _refuse(name)

    def padding(self: Tensor, padding: float, output_size: Any = None) -> NoReturn:
        _refuse(name)

    def moving(
        self: Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> NoReturn:
        _refuse(name)

    forms: dict[str, Any] = {
        "record_stream": streaming,
        "to_mkldnn": converting,
        "to_padded_tensor": padding,
        **dict.fromkeys(("ipu", "mtia", "xpu"), moving),
    }
    method = forms.get(name, bare)
    text = f"Tensor.{name} is not available: {_REFUSED[name][1]}"
    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"{text}."
    # (Tells a placeholder from what works: see `_placeholder`.)
    vars(method)["_pullback_answer"] = text
    return method


def _never(name: str) -> property:
    def answer(self: Tensor) -> bool:
        return False

    answer.__name__ = name
    return property(answer, doc=f"Whether it is a tensor of {name[3:].upper()}: none is.")


def dequantize(self: Tensor) -> Tensor:
    """The elements as ``float32``, which they are already if they are floating point numbers."""
    return self.float()


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The elements in the shape of another tensor. Deprecated: use ``reshape``."""
    from ._question import expect_tensor

    expect_tensor("resize_as", "tensor", 1, tensor)
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return self.resize(tensor.shape)


def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """Gives a sparse tensor another one's size: :func:`torch.resize_as_sparse_`."""
    from ._older import resize_as_sparse_ as resize

    return resize(self, the_template)


def to_sparse_coo(self: Tensor) -> Tensor:
    """The elements other than zero as coordinate lists: :meth:`Tensor.to_sparse`."""
    return self.to_sparse()


def index(self: Tensor, positions: Any, dims: Any) -> Any:
    """The tensor indexed along dimensions: :func:`pullback.functorch.dim.index`."""
    from .functorch.dim import index as along

    return along(self, positions, dims)


def methods() -> dict[str, Any]:
    """All methods by name."""
    found: dict[str, Any] = {name: _refusal(name) for name in _REFUSED}
    found.update({name: _never(name) for name in ("is_ipu", "is_maia", "is_mtia", "is_xla")})
    for method in (dequantize, index, resize_as, resize_as_sparse_, to_sparse_coo):
        found[method.__name__] = method
    return found
