"""Handles of hooks: what ``register_*hook`` gives."""

from .._hooks import RemovableHandle

__all__ = ["RemovableHandle"]
