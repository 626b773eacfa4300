"""Whether constructors check their arguments: here they always do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class check_sparse_tensor_invariants:
    """A context manager, decorator and switch that PyTorch has for its optional checks.

    The checks of this library are always on, so that no index can reach outside of its tensor.
    With the switch, columns that are not in order are refused, which are sorted without it.

    Args:
        enable: what the switch is within the context.
    """

    _enabled = False

    @staticmethod
    def is_enabled() -> bool:
        """Whether checks are switched on by the last call."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Sets the switch."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Unsets the switch; tensors are checked nevertheless."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._state = enable
        self._saved: bool | None = None

    def __enter__(self) -> None:
        if self._saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self._saved = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self._state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = bool(self._saved)
        self._saved = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the switch set while it runs."""

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._state):
                return function(*args, **kwargs)

        return switched
