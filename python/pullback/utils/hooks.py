"""Handles of hooks: what ``register_*hook`` gives."""

from .._hooks import RemovableHandle, unserializable_hook

__all__ = ["RemovableHandle", "unserializable_hook"]
