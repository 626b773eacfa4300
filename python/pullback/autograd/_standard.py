"""Nodes that are no op's, and the names under which PyTorch's extension has them.

``_C._functions`` holds the classes, ``_C._autograd`` the functions of graphs; both are here for
programs that ask for them there.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import _C
from .function import DelayedError
from .graph import Node

__all__ = ["DelayedError", "UndefinedGrad"]


class UndefinedGrad:
    """Gives copies of tensors whose gradients do not reach these, not even as zeros: for tests."""

    def __call__(self, *tensors: Any) -> Any:
        """A copy of the one tensor given.

        Raises:
            TypeError: for another number of arguments, and for what is no tensor.
        """
        return _C._undefined_grad(tensors)


Node.register(DelayedError)
Node.register(UndefinedGrad)


def _are_saved_tensors_hooks_enabled() -> bool:
    return _C._saved_tensors_hooks_get_disabled_error_message() is None


def install() -> None:
    """Adds the functions to the extension."""
    names = {
        "SavedTensor": "SavedTensor",
        "_get_current_graph_task_keep_graph": "_current_graph_task_keep_graph",
        "_saved_tensors_hooks_disable": "_saved_tensors_hooks_disable",
        "_saved_tensors_hooks_enable": "_saved_tensors_hooks_enable",
        "_unsafe_set_version_counter": "_unsafe_set_version_counter",
    }
    extension: Any = _C
    extension._autograd = SimpleNamespace(
        _saved_tensors_hooks_is_enabled=_are_saved_tensors_hooks_enabled,
        **{name: getattr(_C, own) for name, own in names.items()},
    )
    classes = ["AccumulateGrad", "CopySlices", "CopyBackwards"]
    extension._functions = SimpleNamespace(
        DelayedError=DelayedError,
        UndefinedGrad=UndefinedGrad,
        **{name: _C._node_class(name) for name in classes},
    )
