"""Products of scaled matrices of float8 numbers.

A scale for each matrix, or for each row and column, as PyTorch's CPU has them; the kinds with a
scale for each block can be named, and are refused.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _C
from ._native import VF as _VF

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "ScalingType",
    "SwizzleType",
    "scaled_addmm",
    "scaled_addmm_",
    "scaled_grouped_mm",
    "scaled_mm",
]


class ScalingType(enum.IntEnum):
    """The part of a matrix that shares a scale: all of it, a row, or a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """In which order scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


def _refusal(name: str) -> Any:
    text = (
        f"torch.nn.functional.{name} is not available; use torch.nn.functional.scaled_mm for each "
        "product, and add"
    )

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"{text}."
    # (This distinguishes placeholders from functions that work: see `_answer`.)
    vars(refuse)["_pullback_answer"] = text
    return refuse


scaled_addmm = _refusal("scaled_addmm")
scaled_addmm_ = _refusal("scaled_addmm_")
scaled_grouped_mm = _refusal("scaled_grouped_mm")


def _only(values: Any) -> Any:
    """The one value of a list, or what is no list; None for a list of several."""
    if not isinstance(values, (list, tuple)):
        return values
    return values[0] if len(values) == 1 else None


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: Any = _C.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """``(scale_a mat_a) @ (scale_b mat_b) + bias`` of float8 matrices, rounded to ``output_dtype``.

    Args:
        mat_a: (m, k), a float8 dtype.
        mat_b: (k, n), a float8 dtype.
        scale_a: float32, one number, or (m, 1) by rows; or a list of one such.
        scale_recipe_a: `ScalingType.TensorWise` or `ScalingType.RowWise`, that of `scale_b` too.
        scale_b: float32, one number, or (1, n) by columns; or a list of one such.
        scale_recipe_b: as ``scale_recipe_a``.
        swizzle_a: `SwizzleType.NO_SWIZZLE` or None.
        swizzle_b: as ``swizzle_a``.
        bias: n numbers that are added to each row.
        output_dtype: the result's; None means that of ``mat_a``.
        contraction_dim: empty.
        use_fast_accum: changes nothing on a CPU.

    Raises:
        ValueError: for scales by blocks, and for scales or dtypes that do not fit.
    """
    recipes = [_only(scale_recipe_a), _only(scale_recipe_b)]
    swizzles = [_only(swizzle_a), _only(swizzle_b)]
    is_plain = recipes[0] in (ScalingType.TensorWise, ScalingType.RowWise)
    if not is_plain or recipes[0] != recipes[1] or any(swizzles) or len(contraction_dim) > 0:
        sizes = [len(r) if isinstance(r, list) else 1 for r in (scale_recipe_a, scale_recipe_b)]
        names = [mat.type().removeprefix("torch.").removesuffix("Tensor") for mat in (mat_a, mat_b)]
        raise ValueError(
            "Invalid scaling configuration for _scaled_mm_v2: unsupported recipe(s). Got "
            f"mat_a.dtype={names[0]}, mat_b.dtype={names[1]}, recipe_a.size()={sizes[0]}, "
            f"recipe_b.size()={sizes[1]}"
        )
    product: Tensor = _VF._scaled_mm(
        mat_a,
        mat_b,
        _only(scale_a),
        _only(scale_b),
        bias,
        None,
        output_dtype,
        use_fast_accum,
    )
    return product
