"""Handles of hooks: what ``register_*hook`` gives; hooks and pickling."""

from .._hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
