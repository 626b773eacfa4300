"""What nested tensors of both layouts share: how calls reach their rules, copies, texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _C
from .._tensor import Tensor

_Own = TypeVar("_Own", bound="Nested")


class Nested(Tensor):
    """A batch of tensors of different sizes. A layout says how they are kept and computed with."""

    @staticmethod
    def _call(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Computes a call by the layout's rule for it, or refuses it by name."""
        raise NotImplementedError

    @staticmethod
    def _op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Computes what the engine does with gradients, below autograd."""
        raise NotImplementedError

    def _copied(self: _Own) -> _Own:
        """A nested tensor with copies of the elements, without history."""
        raise NotImplementedError

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes the calls that have a rule; others are refused by name."""
        with _C.DisableTorchFunctionSubclass():
            return cls._call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes what the engine does with gradients, below autograd."""
        return cls._op(func, args, kwargs or {})

    # The tensor whose memory it shows, if it shows another's.
    _viewed: Tensor | None = None

    @property
    def _base(self) -> Any:
        return self._viewed

    def _is_view(self) -> bool:
        return self._viewed is not None

    def _showing(self: _Own, other: Tensor) -> _Own:
        """The tensor itself as a view of another tensor, or of that tensor's base."""
        base = other._base
        self._viewed = other if base is None else base
        return self

    @property
    def is_nested(self) -> bool:
        """True."""
        return True

    def to_padded_tensor(
        self, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
    ) -> Tensor:
        """The components one below another, filled up with ``padding``."""
        from . import to_padded_tensor

        return to_padded_tensor(self, padding, output_size, out)

    def _history(self) -> str:
        """The part of the text about its history."""
        if self.grad_fn is not None:
            return f", grad_fn=<{self.grad_fn.name()}>"
        return ", requires_grad=True" if self.requires_grad else ""

    def _check_pickled(self) -> None:
        if not self.is_leaf:
            raise RuntimeError("only leaves of the graph can be pickled: detach() it first")

    def __deepcopy__(self: _Own, memo: dict[Any, Any]) -> _Own:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        if id(self) not in memo:
            memo[id(self)] = self._copied().requires_grad_(self.requires_grad)
        result: _Own = memo[id(self)]
        return result
