"""Settings of how modules convert their parameters, which PyTorch means to change one day."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite_module_params_on_conversion: bool = False
_swap_module_params_on_conversion: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions of modules put new parameters in the place of the old.

    Args:
        value: by default (false) a parameter stays the same object, and its data is exchanged.
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The setting of :func:`set_overwrite_module_params_on_conversion`."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions and ``load_state_dict`` exchange parameters by ``swap_tensors``.

    A parameter stays the same object then, and tensors that share its memory keep what they have.

    Args:
        value: by default (false) its data is exchanged, or overwritten.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """The setting of :func:`set_swap_module_params_on_conversion`."""
    return _swap_module_params_on_conversion
