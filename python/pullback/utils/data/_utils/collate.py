"""How items become a batch, under the names of PyTorch's module."""

from ..collate import _collate_float as collate_float_fn
from ..collate import _collate_int as collate_int_fn
from ..collate import _collate_numpy_array as collate_numpy_array_fn
from ..collate import _collate_numpy_scalar as collate_numpy_scalar_fn
from ..collate import _collate_text as collate_str_fn
from ..collate import (
    collate,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
]
