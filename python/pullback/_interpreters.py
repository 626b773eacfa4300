"""The open transforms of a thread as PyTorch's interpreters, to be looked at.

An interpreter here is a view: it says of one open transform what it is, at which level, and with
which settings. Ops do not go through it. ``torch._C._functorch`` has the names (`_levels`).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from . import _C, _transform

__all__ = [
    "CFunctionalizeInterpreterPtr",
    "CGradInterpreterPtr",
    "CInterpreter",
    "CJvpInterpreterPtr",
    "CVmapInterpreterPtr",
    "RandomnessType",
    "TransformType",
    "get_interpreter_stack",
    "peek_interpreter_stack",
]


class TransformType(Enum):
    """The kinds of transforms, with PyTorch's numbers."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4

    def __int__(self) -> int:
        return self.value


class RandomnessType(Enum):
    """What random ops do within ``vmap``."""

    Error = 0
    Same = 1
    Different = 2

    def __int__(self) -> int:
        return self.value


_KEYS = {"vmap": TransformType.Vmap, "grad": TransformType.Grad, "jvp": TransformType.Jvp}
_RANDOMNESS = {
    "error": RandomnessType.Error,
    "same": RandomnessType.Same,
    "different": RandomnessType.Different,
}


class CInterpreter:
    """One open transform; made by :func:`peek_interpreter_stack`."""

    def __init__(self) -> None:
        raise TypeError("torch._C._functorch.CInterpreter: No constructor defined!")

    @classmethod
    def _of(cls, transform: _transform.Transform, position: int) -> CInterpreter:
        self = cls.__new__(cls)
        self._layer = transform
        self._position = position
        return self

    _layer: _transform.Transform
    _position: int

    def key(self) -> TransformType:
        """The kind of the transform."""
        return _KEYS[self._layer.kind]

    def level(self) -> int:
        """The number of its level; of reverse mode, which has none, where it stands, from 1."""
        return self._position if self._layer.level < 0 else self._layer.level


class _View:
    """A transform of one kind."""

    _key: ClassVar[TransformType]

    def __init__(self, interpreter: CInterpreter, /) -> None:
        """Takes the interpreter.

        Raises:
            RuntimeError: for an interpreter of another kind.
        """
        if interpreter.key() is not self._key:
            raise RuntimeError(
                f"{type(self).__name__}: expected an interpreter of {self._key}, got one of "
                f"{interpreter.key()}"
            )
        self._interpreter = interpreter

    def key(self) -> TransformType:
        """The kind of the transform."""
        return self._key

    def level(self) -> int:
        """See :meth:`CInterpreter.level`."""
        return self._interpreter.level()


class CVmapInterpreterPtr(_View):
    """A transform of ``vmap``."""

    _key = TransformType.Vmap

    def batchSize(self) -> int:
        """How many examples there are."""
        return self._interpreter._layer.size

    def randomness(self) -> RandomnessType:
        """What random ops do."""
        return _RANDOMNESS[self._interpreter._layer.randomness]


class CGradInterpreterPtr(_View):
    """A transform of reverse mode."""

    _key = TransformType.Grad

    def prevGradMode(self) -> bool:
        """Whether grad mode was on outside of it."""
        return self._interpreter._layer.was_enabled

    def lift(self, tensor: Any, /) -> Any:
        """The tensor as it is: one from outside is a constant of the transform."""
        return tensor


class CJvpInterpreterPtr(_View):
    """A transform of forward mode."""

    _key = TransformType.Jvp

    def prevFwdGradMode(self) -> bool:
        """Whether forward mode was on outside of it."""
        return self._interpreter._layer.was_enabled

    def lift(self, tensor: Any, /) -> Any:
        """The tensor as it is: one from outside is a constant of the transform."""
        return tensor


class CFunctionalizeInterpreterPtr(_View):
    """A transform of ``functionalize``; as it opens no level, there is no interpreter of it."""

    _key = TransformType.Functionalize


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The open transforms of this thread, the outermost first; None outside of all of them."""
    layers = _transform.of_thread()
    return [CInterpreter._of(one, place) for place, one in enumerate(layers, 1)] or None


def peek_interpreter_stack() -> CInterpreter | None:
    """The innermost open transform of this thread; None outside of all of them."""
    layers = get_interpreter_stack()
    return layers[-1] if layers else None


def written(tensor: Any) -> str:
    """A tensor's levels as a line, the innermost first."""
    level = _C._vmap_level(tensor)
    if level >= 0:
        return f"Batched[lvl={level} dim=0, {written(_C._vmap_unwrapped(tensor))}]"
    return f"Tensor{list(tensor.shape)}"
