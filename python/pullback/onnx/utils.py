"""The exporter of before, under the name of PyTorch's module: only what registers is taken."""

from __future__ import annotations

from .. import _absent
from . import is_in_onnx_export, register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = [
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

_absent.announce(globals())
