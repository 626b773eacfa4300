"""How ``torch.einsum`` orders its products: by itself, the package opt_einsum is not asked."""

from __future__ import annotations

from types import ModuleType

from .. import _absent
from ._switch import guard, is_bool

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package is asked: never."""
    return False


def get_opt_einsum() -> ModuleType | None:
    """The package, if it is asked: None."""
    return None


def _is_strategy(name: str, value: object) -> None:
    if value not in (None, "auto", "auto-hq", "greedy", "optimal"):
        raise RuntimeError(f"{name} expects auto, auto-hq, greedy or optimal, but got {value!r}")


guard(globals(), enabled=is_bool, strategy=_is_strategy)
_absent.announce(globals())
