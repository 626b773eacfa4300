"""What `emit_itt` does: every op, and every range of the program, is a range of another tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd import profiler as prof
from ..utils._python_dispatch import _WatchingMode
from . import itt

if TYPE_CHECKING:
    from typing_extensions import Self


def _sizes(value: Any) -> list[Any]:
    if isinstance(value, _C.TensorBase):
        return [int(size) for size in value.shape]
    if isinstance(value, (tuple, list)):
        return [_sizes(each) for each in value if isinstance(each, _C.TensorBase)]
    return []


class Annotate(_WatchingMode):
    """Sees the ops of a thread, and runs them as they are, each in a range.

    Args:
        record_shapes: whether names of ranges say the sizes of arguments.
    """

    def __init__(self, record_shapes: bool) -> None:
        super().__init__()
        self.record_shapes = record_shapes

    def __enter__(self) -> Self:
        super().__enter__()
        prof._range_observers.append(self._opened)
        return self

    def __exit__(self, *error: Any) -> None:
        prof._range_observers.remove(self._opened)
        super().__exit__(*error)

    @staticmethod
    def _opened(name: str) -> Callable[[], None]:
        itt.range_push(name)
        return itt.range_pop

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs an op in a range."""
        kwargs = kwargs or {}
        name = f"{func.namespace}::{func._opname}"
        if self.record_shapes:
            name += f", sizes = {[_sizes(value) for value in (*args, *kwargs.values())]}"
        itt.range_push(name)
        try:
            return func(*args, **kwargs)
        finally:
            itt.range_pop()
