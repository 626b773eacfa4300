"""Whether programs ask for deterministic algorithms.

All algorithms of this package are deterministic, so nothing else is chosen, and nothing is refused.
The setting is kept and reported; while it is on, memory that nobody has written to is filled with
NaN or the largest number (``torch.utils.deterministic.fill_uninitialized_memory``), as in PyTorch.
"""

from __future__ import annotations

from . import _C

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "use_deterministic_algorithms",
]

_MODES = {"default": 0, "warn": 1, "error": 2}

_enabled = _warn_only = False
_fills = True


def _apply() -> None:
    _C._set_fill_uninitialized(_enabled and _fills)


def _check(value: object, argument: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument {argument} must be bool, "
            f"not {type(value).__name__}"
        )


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Says whether algorithms must give the same bits in every run: here they always do.

    Args:
        mode: whether they must. While they must, ``empty``, ``resize_`` and their like fill memory
            that they would leave as it is: see :mod:`torch.utils.deterministic`.
        warn_only: whether others would warn instead of being errors; there are no others.

    Raises:
        TypeError: if one of them is not a bool.
    """
    global _enabled, _warn_only
    _check(mode, "'mode' (position 1)")
    _check(warn_only, "'warn_only'")
    _enabled, _warn_only = mode, warn_only
    _apply()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` requested them."""
    return _enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` was told to warn only."""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same setting as one of three modes.

    Args:
        debug_mode: 0 or ``"default"`` for no such wish, 1 or ``"warn"``, 2 or ``"error"``.

    Raises:
        TypeError: if it is neither a number nor a name.
        RuntimeError: if there is no such mode.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode is None:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, "
            f"but got {debug_mode}"
        )
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(mode != 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """The mode in force: see :func:`set_deterministic_debug_mode`."""
    if not _enabled:
        return 0
    return 1 if _warn_only else 2


def _fills_uninitialized_memory() -> bool:
    return _fills


def _set_fill_uninitialized_memory(fills: object) -> None:
    global _fills
    if not isinstance(fills, bool):
        raise RuntimeError(
            f"fill_uninitialized_memory: expected a bool, but got {type(fills).__name__}"
        )
    _fills = fills
    _apply()
