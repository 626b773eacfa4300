"""Products of scaled matrices of short floating point numbers, which wait for such dtypes.

The names can be imported, and the kinds of scales can be named; the products say what is missing.
"""

from __future__ import annotations

import enum
from typing import Any, NoReturn

__all__ = [
    "ScalingType",
    "SwizzleType",
    "scaled_addmm",
    "scaled_addmm_",
    "scaled_grouped_mm",
    "scaled_mm",
]


class ScalingType(enum.IntEnum):
    """What shares a scale: the whole matrix, a row, or a block."""

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
        f"torch.nn.functional.{name} is not available: there are no float8 dtypes; multiply by the "
        "scales, and the matrices in bfloat16"
    )

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"{text}."
    # (What only answers is told from what works by this: see `_answer`.)
    vars(refuse)["_pullback_answer"] = text
    return refuse


scaled_addmm = _refusal("scaled_addmm")
scaled_addmm_ = _refusal("scaled_addmm_")
scaled_grouped_mm = _refusal("scaled_grouped_mm")
scaled_mm = _refusal("scaled_mm")
