"""What libraries read of :mod:`torch.library`'s parts: signatures of ops, and names of ops.

The public face is :mod:`pullback.library`; nothing here is imported before a program asks for it.
Parts of PyTorch's compiler that have the same package (classes for fakes, Triton, effects) are not
here.
"""

from __future__ import annotations

from . import custom_ops, infer_schema, utils

__all__ = ["custom_ops", "infer_schema", "utils"]
