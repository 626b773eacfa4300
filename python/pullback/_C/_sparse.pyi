# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def sparse_sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)` at the coordinates that `self`, a matrix of compressed rows, specifies."""
