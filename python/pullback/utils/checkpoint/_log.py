"""``checkpoint(debug=True)``: logs of the ops of a region, for the error when they differ."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .._python_dispatch import TorchDispatchMode
from .._pytree import tree_map
from ._region import CheckpointError, is_tensor

if TYPE_CHECKING:
    from typing_extensions import Self

# The frames of a log, the innermost first, that are kept of each op.
_FRAMES = 12


class OpLog(TorchDispatchMode):
    """Notes each op with its arguments, its results and where it was called.

    Tensors are numbered in the order of their first appearance: ``$0``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clear()

    def _clear(self) -> None:
        self.lines: list[str] = []
        self.stacks: list[traceback.StackSummary] = []
        # By address. (Tensors are no keys of weak dictionaries: they compare element by element.)
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 0

    def __enter__(self) -> Self:
        self._clear()
        return super().__enter__()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the op and notes it."""
        kwargs = kwargs or {}
        given = [f"{self._text(arg)}" for arg in args]
        given += [f"{name}={self._text(arg)}" for name, arg in kwargs.items()]
        out = func(*args, **kwargs)
        self.lines.append(f"{self._text(out, with_type=True)} = {func}({', '.join(given)})")
        frames = traceback.walk_stack(None)
        outside = (frame for frame in frames if frame[0].f_globals.get("__name__") != __name__)
        self.stacks.append(traceback.StackSummary.extract(outside, limit=_FRAMES))
        return out

    def _text(self, value: Any, with_type: bool = False) -> str:
        def text(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            kind = f": {str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
            return _Word(f"${self._number(leaf)}{kind if with_type else ''}")

        return str(tree_map(text, value))

    def _number(self, tensor: Any) -> int:
        known = self._numbers.get(id(tensor))
        if known is None or known[0]() is not tensor:
            known = weakref.ref(tensor), self._next
            self._numbers[id(tensor)] = known
            self._next += 1
        return known[1]

    def traces(self, label: str) -> str:
        """All lines, each with the calls that led there, the innermost first."""
        parts = []
        for count, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True), 1):
            calls = "\n".join(f"{f.filename}:{f.lineno}:{f.name}" for f in stack)
            parts.append(f"{line}   ({count} of {len(self.lines)} in {label})\n\n{calls}\n")
        return "\n\n".join(parts)


class _Word(str):
    """A text that is shown without quotes inside of containers."""

    def __repr__(self) -> str:
        return str(self)


class DebugLogs:
    """The logs of a region's forward and of its recomputation."""

    def __init__(self) -> None:
        self.forward = OpLog()
        self.again = OpLog()

    def contexts(self) -> tuple[TorchDispatchMode, TorchDispatchMode]:
        """The contexts that write them."""
        return self.forward, self.again

    def explain(self, error: CheckpointError) -> NoReturn:
        """Raises an error with the logs."""

        def section(number: int, title: str, text: str) -> str:
            rule = "=" * 80
            return f"{rule}\n{number}. {title}\n{rule}\n{text}\n"

        ops = (
            "Operations executed during the original forward:\n\n"
            + "\n".join(self.forward.lines)
            + "\n\nOperations executed during recomputation:\n\n"
            + "\n".join(self.again.lines)
            + "\n\n(Calls of detach may differ: checkpointing itself makes them.)\n"
        )
        what = (
            "You are seeing this error because you passed `debug=True` to checkpoint, and what the "
            "region saved differs between the original forward and the recomputation. Compare the "
            "ops in section 3; sections 1 and 2 say where each was called.\n"
        )
        raise CheckpointError(
            "the logs of a checkpointed region follow, the explanation is at the end\n\n"
            + section(1, "Ops of the original forward", self.forward.traces("original"))
            + section(2, "Ops of the recomputation", self.again.traces("recompute"))
            + section(3, "Both in short", ops)
            + section(4, "What happened", what + str(error))
        ) from error
