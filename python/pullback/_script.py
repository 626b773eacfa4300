"""The script of a function."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from . import _placeholder

# (The package has a function of its own by this name.)
is_a = builtins.isinstance


def refuse(name: str) -> NoReturn:
    """Raises the error of a name of ``torch.jit``."""
    refusal = _placeholder.refusal_of("torch.jit")
    assert refusal is not None
    raise refusal.error(refusal.text(name))


class ScriptFunction:
    """Calls the function; what only a script has is an error.

    Args:
        function: a function of Python.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._torchdynamo_inline = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._torchdynamo_inline(*args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(
            self._torchdynamo_inline, "__name__", type(self._torchdynamo_inline).__name__
        )

    @property
    def graph(self) -> NoReturn:
        """There is no graph."""
        refuse("ScriptFunction.graph")

    @property
    def code(self) -> NoReturn:
        """There is no code but Python's."""
        refuse("ScriptFunction.code")

    def save(self, f: Any, _extra_files: Any = None) -> NoReturn:
        """Scripts are not saved."""
        refuse("ScriptFunction.save")

    def save_to_buffer(self, _extra_files: Any = None) -> NoReturn:
        """Scripts are not saved."""
        refuse("ScriptFunction.save_to_buffer")
