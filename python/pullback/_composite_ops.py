"""Ops of ``torch.ops.aten`` that are written in Python, over other ops: read when one is asked for.

Libraries name such overloads to register their own rules for them (``__torch_dispatch__``), and
call some. The table has their signatures; the function of a row takes the arguments as the
signature has them. What is here has no entry in the extension's registry, so that ``torch`` itself
shows none of it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from . import _C, _private
from ._check import _assert_async
from ._ops import OpOverload, OpOverloadPacket
from .library import _schema
from .library._overload import CustomOverload, CustomPacket

__all__ = ["find"]


def _reduced(method: str, self: Any) -> Any:
    if self.dtype is not _C.bool:
        raise RuntimeError(f"expected a tensor of dtype bool, got {self.dtype}")
    return getattr(self, method)()


def _in_range(size: Any, *, min: int | None, max: int | None) -> None:
    low, high = min is None or size >= min, max is None or size <= max
    if not (low and high):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(
    a: Any,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """Raises unless a tensor has the stated properties."""
    checks = (
        ("sizes", size, lambda: list(a.shape)),
        ("strides", stride, lambda: list(a.stride())),
        ("dtype", dtype, lambda: a.dtype),
        ("device", device, lambda: a.device),
        ("layout", layout, lambda: a.layout),
    )
    for name, wanted, found in checks:
        wanted = list(wanted) if isinstance(wanted, (list, tuple)) else wanted
        if wanted is not None and wanted != found():
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found()}")


def _to_dtype_layout(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    if layout is not None and layout is not self.layout:
        raise RuntimeError(
            f"to(options) doesn't support converting to a different layout, {layout}"
        )
    if pin_memory:
        raise RuntimeError("to(options) doesn't support pinning memory, use Tensor.pin_memory")
    return self.to(device, dtype, non_blocking, copy, memory_format=memory_format)


def _grouped_mm(self: Any, mat2: Any, offs: Any, bias: Any, out_dtype: Any) -> Any:
    from .nn.functional import grouped_mm

    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _sparse_addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any, alpha: Any) -> Any:
    from .sparse import addmm

    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm(sparse: Any, dense: Any, *reduce: str) -> Any:
    from .sparse import mm

    return mm(sparse, dense, *reduce)


def _with_mode(method: str, self: Any, other: Any, *, rounding_mode: str | None) -> Any:
    return getattr(self, method)(other, rounding_mode=rounding_mode)


def _arithmetic(method: str, self: Any, other: Any, *alpha: Any) -> Any:
    return getattr(self, method)(other, **({"alpha": alpha[0]} if alpha else {}))


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


def _of_numbers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Ops of two numbers, which have the names of those of tensors."""
    kinds = ["int", "complex", "float", "int_complex", "complex_int", "float_complex"]
    kinds += ["complex_float", "int_float", "float_int"]
    for name in ("add", "sub", "mul"):
        for kind in kinds:
            left, _, right = kind.partition("_")
            result = next(word for word in ("complex", "float", "int") if word in kind)
            yield f"{name}.{kind}({left} a, {right or left} b) -> {result}", getattr(operator, name)
        yield f"{name}(Scalar a, Scalar b) -> Scalar", getattr(operator, name)
    yield "div(Scalar a, Scalar b) -> Scalar", operator.truediv
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield f"{name}(Scalar a, Scalar b) -> bool", getattr(operator, name)


def _size(self: Any) -> list[int]:
    if self.is_nested:
        raise RuntimeError(
            "a nested tensor does not support directly calling torch.ops.aten.size: not all of its "
            "sizes are numbers; use torch.ops.aten.sym_size"
        )
    return list(self.shape)


def _is_dense(self: Any) -> bool:
    """Whether the elements fill their memory, in some order of the dimensions."""
    if self.is_nested:
        return False
    sizes = [
        (step, size) for step, size in zip(self.stride(), self.shape, strict=True) if size != 1
    ]
    expected = 1
    for step, size in sorted(sizes):
        if step != expected:
            return bool(self.numel() == 0)
        expected *= size
    return True


def _jagged_to_padded(values: Any, offsets: Any, max_lengths: Any, padding_value: float) -> Any:
    from .nested._padded import jagged_to_padded

    return jagged_to_padded(values, offsets, max_lengths, padding_value)


def _padded_to_jagged(dense: Any, offsets: Any, total_L: int | None) -> Any:
    from .nested._padded import padded_to_jagged

    return padded_to_jagged(dense, offsets, total_L)


_HOW = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"
_OPS: dict[str, Callable[..., Any]] = {
    "_pin_memory(Tensor self, Device? device=None) -> Tensor": _method("pin_memory"),
    "pin_memory(Tensor self, Device? device=None) -> Tensor": _method("pin_memory"),
    "is_pinned(Tensor self, Device? device=None) -> bool": _method("is_pinned"),
    "_is_all_true(Tensor self) -> Tensor": functools.partial(_reduced, "all"),
    "_is_any_true(Tensor self) -> Tensor": functools.partial(_reduced, "any"),
    "_assert_async(Tensor self) -> ()": _assert_async,
    "_assert_async.msg(Tensor self, str assert_msg) -> ()": _assert_async,
    "_assert_scalar(Scalar self, str assert_msg) -> ()": _assert_scalar,
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
    "dtype=None, *, Device? device=None, Layout? layout=None) -> ()": _assert_tensor_metadata,
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
    "out_dtype=None) -> Tensor": _grouped_mm,
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor": _sparse_addmm,
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int "
    "num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
    "mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> "
    "(Tensor, Tensor)": _private._native_multi_head_attention,
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, "
    "Tensor)": _private._transform_bias_rescale_qkv,
    "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor": _sparse_mm,
    "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor": _sparse_mm,
    f"to.device(Tensor self, Device device, ScalarType dtype, {_HOW}) -> Tensor": (
        lambda self, device, dtype, non_blocking, copy, format: self.to(
            device, dtype, non_blocking, copy, memory_format=format
        )
    ),
    f"to.dtype(Tensor self, ScalarType dtype, {_HOW}) -> Tensor": (
        lambda self, dtype, non_blocking, copy, format: self.to(
            dtype, non_blocking, copy, memory_format=format
        )
    ),
    f"to.other(Tensor self, Tensor other, {_HOW}) -> Tensor": (
        lambda self, other, non_blocking, copy, format: self.to(
            other, non_blocking, copy, memory_format=format
        )
    ),
    "to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    f"device=None, bool? pin_memory=None, {_HOW}) -> Tensor": _to_dtype_layout,
    "sym_size(Tensor self) -> SymInt[]": lambda self: list(self.shape),
    "sym_size.int(Tensor self, int dim) -> SymInt": _method("size"),
    "sym_stride(Tensor self) -> SymInt[]": lambda self: list(self.stride()),
    "sym_stride.int(Tensor self, int dim) -> SymInt": _method("stride"),
    "sym_numel(Tensor self) -> SymInt": _method("numel"),
    "size(Tensor self) -> int[]": _size,
    "size.int(Tensor self, int dim) -> int": _method("size"),
    "stride(Tensor self) -> int[]": lambda self: list(self.stride()),
    "stride.int(Tensor self, int dim) -> int": _method("stride"),
    "dim(Tensor self) -> int": _method("dim"),
    "numel(Tensor self) -> int": _method("numel"),
    "storage_offset(Tensor self) -> int": _method("storage_offset"),
    "is_contiguous(Tensor self) -> bool": _method("is_contiguous"),
    "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool": (
        lambda self, format: self.is_contiguous(memory_format=format)
    ),
    "is_non_overlapping_and_dense(Tensor self) -> bool": _is_dense,
    "is_same_size(Tensor self, Tensor other) -> bool": _method("is_same_size"),
    "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float "
    "padding_value=0.) -> Tensor": _jagged_to_padded,
    "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> "
    "Tensor": _padded_to_jagged,
    "sym_storage_offset(Tensor self) -> SymInt": _method("storage_offset"),
    **{
        f"{name}.Scalar(Tensor self, Scalar other{alpha}) -> Tensor": functools.partial(
            _arithmetic, name
        )
        for names, alpha in (("add sub", ", Scalar alpha=1"), ("mul div", ""))
        for name in names.split()
    },
    "detach_(Tensor self) -> Tensor": _method("detach_"),
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()": _in_range,
    "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()": _in_range,
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor": (
        functools.partial(_with_mode, "div")
    ),
    **dict(_of_numbers()),
}


# Questions that are asked of the class of a tensor (`_asked`).
_PRIM_OPS: dict[str, Callable[..., Any]] = {
    "device(Tensor a) -> Device": lambda a: a.device,
    "layout(Tensor a) -> Layout": lambda a: a.layout,
}


# Second names of ops: a call is one of the op itself, in every form that this has.
_ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "row_stack": "vstack",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}


class _Alias(OpOverload):
    """A form of an op under a second name."""

    def __init__(self, name: str, meant: OpOverload) -> None:
        """Made on first access, because the namespace may have a form of this name."""
        # (The signature is of the functional form: what follows the name there stays.)
        rest = meant._schema_text.removeprefix(meant._opname.removesuffix("_"))
        super().__init__(name, meant._overloadname, name.removesuffix("_") + rest, meant._call)
        self._meant = meant

    def _registrations(self) -> list[tuple[str, str, str]]:
        return [("CompositeImplicitAutograd", f"another name of {self._meant}", "unknown")]

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether the op that is meant has a kernel or rule for a dispatch key."""
        return str(key) == "CompositeImplicitAutograd"


def alias(name: str) -> OpOverloadPacket | None:
    """The packet of a second name; None where it is none."""
    is_inplace = name.endswith("_")
    meant = _ALIASES.get(name.removesuffix("_"))
    if meant is None:
        return None
    overloads = _C._overloads(meant + "_" * is_inplace)
    wanted = [one for one in overloads if name != "true_divide" or "mode" not in one._overloadname]
    return OpOverloadPacket(name, [_Alias(name, one) for one in wanted]) if wanted else None


@functools.lru_cache(maxsize=2)
def _packets(namespace: str) -> dict[str, CustomPacket]:
    packets: dict[str, CustomPacket] = {}
    for text, function in (_OPS if namespace == "aten" else _PRIM_OPS).items():
        overload = CustomOverload(namespace, _schema.parse(text))
        overload.kernels["CompositeImplicitAutograd"] = function
        packet = packets.setdefault(overload._opname, CustomPacket(namespace, overload._opname))
        packet._by_name[overload._overloadname] = overload
    return packets


def find(name: str, overload: str | None = None, namespace: str = "aten") -> Any:
    """The packet of a name, or one of its overloads; None where there is none."""
    packet = _packets(namespace).get(name)
    return packet if packet is None or overload is None else packet._by_name.get(overload)
