"""The number that natives take for the word ``reduction``, and the two older flags it replaced."""

from __future__ import annotations

import warnings

__all__: list[str] = []

_ENUM = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """0 for ``'none'``, 1 for ``'mean'``, 2 for ``'sum'``.

    Raises:
        ValueError: another word.
    """
    number = _ENUM.get(reduction)
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=3,
        )
    return number


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The word that the flags ``size_average`` and ``reduce`` (both true by default) stood for."""
    if reduce is not None and not reduce:
        word = "none"
    elif size_average is None or size_average:
        word = "mean"
    else:
        word = "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{word}' instead.",
            stacklevel=3,
        )
    return word


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """As :func:`legacy_get_string`, the number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolved(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The word in force when both the older flags and ``reduction`` may be given."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)
