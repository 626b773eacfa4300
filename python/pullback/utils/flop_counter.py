"""Counts the multiplications and additions of a program's products, module by module.

A product of an ``m x k`` and a ``k x n`` matrix counts as ``2 m k n``; convolutions are products of
their own. How many a call makes says the op itself (the function ``flops`` of its item), from
shapes and numbers alone, so that a program on meta tensors is counted without being computed. Other
ops count as none, unless a formula is registered.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .._tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map_only
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

# Formulas that a program has registered, by the name of an op; they go before the op's own count.
flop_registry: dict[str, Callable[..., int]] = {}


def _name(target: Any) -> str:
    """The name of an op, without its overload."""
    text = target if isinstance(target, str) else str(target)
    parts = text.replace("::", ".").split(".")
    return ".".join(parts[:2]) if len(parts) > 1 else f"aten.{text}"


def get_shape(i: Any) -> Any:
    """The shape of a tensor; other values unchanged."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors, whose result is given as ``out_val=``."""

    @functools.wraps(f)
    def run(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = tree_map_only(Tensor, get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out, **kwargs)

    return run


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """A decorator for the count of ops: a function of the op's arguments and ``out_shape=``.

    Args:
        targets: an op as ``torch.ops.aten.mm``, or a list of ops.
        get_raw: whether the function gets tensors, and ``out_val=``; otherwise their shapes.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_name(target)] = formula if get_raw else shape_wrapper(formula)
        return formula

    return register


# ---- the formulas, by name -----------------------------------------------------------------------

Shape = Sequence[int]


def _product(a: Shape, b: Shape, batch: int = 1) -> int:
    (m, k), (other, n) = a, b
    if k != other:
        raise AssertionError(f"matrix multiplication: inner dimensions {k} and {other} differ")
    return 2 * batch * m * k * n


@shape_wrapper
def mm_flop(
    a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of a product of two matrices: ``2 m k n``."""
    return _product(a_shape, b_shape)


@shape_wrapper
def addmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of ``addmm``: those of the product."""
    return _product(a_shape, b_shape)


@shape_wrapper
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a batch of products."""
    return _batched(a_shape, b_shape)


@shape_wrapper
def baddbmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of ``baddbmm``: those of the products."""
    return _batched(a_shape, b_shape)


def _batched(a: Shape, b: Shape) -> int:
    if a[0] != b[0]:
        raise AssertionError(f"bmm: batch dimensions {a[0]} and {b[0]} differ")
    return _product(a[1:], b[1:], a[0])


def conv_flop_count(
    x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False
) -> int:
    """The operations of a convolution: each weight at each position of the output.

    Args:
        x_shape: the shape of the input, ``(batch, channels, ...)``.
        w_shape: the shape of the weights.
        out_shape: the shape of the output.
        transposed: whether it is a transposed convolution: the positions are those of the input.
    """
    positions = prod((x_shape if transposed else out_shape)[2:])
    return 2 * x_shape[0] * positions * prod(w_shape)


@shape_wrapper
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of ``convolution``, by its arguments."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@shape_wrapper
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of ``convolution_backward``: a convolution for each gradient asked for.

    The arguments after the weights are those of the op: ``transposed`` is the fifth of them,
    ``output_mask`` the eighth.
    """
    transposed, output_mask = args[4], args[7]
    once = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed=transposed)
    return once * (bool(output_mask[0]) + bool(output_mask[1]))


def _attention(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> tuple[int, int]:
    """The counts of ``q k^T`` and of the product of what came of it with the values."""
    *batch, queries, width = query_shape
    *of_keys, keys, other = key_shape
    *of_values, count, depth = value_shape
    if not (batch == of_keys == of_values and width == other and keys == count):
        raise AssertionError(
            f"sdpa: shapes {tuple(query_shape)}, {tuple(key_shape)} and {tuple(value_shape)} do "
            "not fit"
        )
    pairs = 2 * prod(batch) * queries * keys
    return pairs * width, pairs * depth


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """The operations of attention: its two products."""
    return sum(_attention(query_shape, key_shape, value_shape))


@shape_wrapper
def sdpa_flop(
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of the ops for attention, by their arguments."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape
) -> int:
    """Those of attention's backward: the scores anew, and two products for each product."""
    scores, result = _attention(query_shape, key_shape, value_shape)
    return 3 * scores + 2 * result


@shape_wrapper
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The operations of the ops for the backward of attention, by their arguments."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# ---- how counts are written ----------------------------------------------------------------------

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The suffix with which a count has from one to six digits before the point."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A count in units of a suffix: ``12.346M``."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A share in per cent, ``0%`` of nothing."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


class FlopCounterMode:
    """A context that counts, in all and for each module by its name.

    Args:
        mods: has no meaning any more.
        depth: how deep the table shows modules.
        display: whether the table is printed at the end.
        custom_mapping: further counts, by op; see :func:`register_flop_formula`.
        skip_unsupported: whether ops whose count is not known may be part of the program; they
            count as none.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mod_tracker = ModuleTracker()
        self._formulas = dict(flop_registry)
        for target, formula in (custom_mapping or {}).items():
            self._formulas[_name(target)] = (
                formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            )
        self._mode: _CountingMode | None = None

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode = _CountingMode(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._mode is not None
        self._mode.__exit__(*error)
        self._mode = None
        self.mod_tracker.__exit__()
        if self.display and error[0] is None:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """The total count."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts by module and op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts by module and op as a text.

        Args:
            depth: how deep modules are shown.
        """
        most = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > most:
                continue
            counts = self.flop_counts[name]
            rows.append(_row("  " * level + name, sum(counts.values()), total))
            for op, count in counts.items():
                rows.append(_row("  " * level + f" - {op}", count, total))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows
        ]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([lines[0], rule, *lines[1:]])

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        formula = self._formulas.get(_name(func))
        if formula is None:
            count = func._flops(*args, **kwargs)
            if count is None:
                return
        else:
            count = formula(*args, **kwargs, out_val=out)
        for parent in set(self.mod_tracker.parents):
            self.flop_counts[parent][getattr(func, "overloadpacket", func)] += count


def _row(name: str, count: int, total: int) -> tuple[str, str, str]:
    return name, f"{count:,}", f"{count / total:.2%}" if total else "0.00%"


class _CountingMode(TorchDispatchMode):
    """Passes every op to the counter."""

    supports_higher_order_operators = True

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self._counter = counter

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        self._counter._count(func, args, kwargs or {}, out)
        return out
