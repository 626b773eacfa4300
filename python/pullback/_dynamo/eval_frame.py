"""The module that ``torch.compile`` returns."""

from __future__ import annotations

from typing import Any

from ..nn.modules.module import Module

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether programs are captured: never."""
    return False


class OptimizedModule(Module):
    """Stands for a compiled module, and calls it.

    The module is a part of this one: parameters have the prefix ``_orig_mod.`` in state dicts.
    Attributes are those of the module, and are set on it.
    """

    _OWN = frozenset({"_orig_mod", "_captured"})

    def __init__(self, mod: Module, captured: Any = None) -> None:
        super().__init__()
        self.add_module("_orig_mod", mod)
        if captured is not None:
            self.__dict__["_captured"] = captured

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        module = self._modules.get("_orig_mod")
        return True if module is None else module.training

    @training.setter
    def training(self, mode: bool) -> None:
        # (Asked for by the constructor of the base, before there is a module.)
        if "_modules" in self.__dict__ and self._modules.get("_orig_mod") is not None:
            self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name in self._OWN or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_own = name in self.__dict__ or hasattr(type(self), name) or name in self._OWN
        if is_own or "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__ or name in self._OWN:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        if hasattr(type(self._orig_mod), "__len__"):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod)} does not support len()")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, by a replay where it is captured."""
        call = self.__dict__.get("_captured") or self._orig_mod
        return call(*args, **kwargs)
