"""Counts the multiplications and additions of a program's products, module by module.

A product of an ``m x k`` and a ``k x n`` matrix counts as ``2 m k n``; convolutions are products of
their own. How many a call makes says the op itself (the function ``flops`` of its item), from
shapes and numbers alone, so that a program on meta tensors is counted without being computed. Other
ops count as none, unless a formula is registered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map_only
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

# Formulas that a program has registered, by the name of an op; they go before the op's own count.
flop_registry: dict[str, Callable[..., int]] = {}


def _name(target: Any) -> str:
    """The name of an op, of all its overloads."""
    text = target if isinstance(target, str) else str(target)
    parts = text.replace("::", ".").split(".")
    return ".".join(parts[:2]) if len(parts) > 1 else f"aten.{text}"


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors."""

    def run(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = tree_map_only(Tensor, lambda x: x.shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)

    return run


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """A decorator for the count of ops: a function of the op's arguments and ``out_shape=``.

    Args:
        targets: an op as ``torch.ops.aten.mm``, or a list of ops.
        get_raw: whether the function gets tensors, and ``out_val=``; otherwise their shapes.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_name(target)] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


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
                formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
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
        """The count of all."""
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
    """Sees every op, and has it counted."""

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
