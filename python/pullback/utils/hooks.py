"""Handles of hooks: what ``register_*hook`` gives; hooks of modules; hooks and pickling."""

from .._hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks
from ..nn.modules.backward_hook import BackwardHook

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
