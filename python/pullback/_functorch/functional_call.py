"""Modules as functions of their parameters, under the name of PyTorch's module."""

from __future__ import annotations

from ..func._functional_call import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
