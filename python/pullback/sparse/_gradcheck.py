"""``gradcheck`` that gets sparse inputs as strided ones: what PyTorch's decorator stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """The same check; here ``gradcheck`` itself knows sparse inputs.

    PyTorch's own extends its ``gradcheck`` to inputs of all sparse layouts, with ``masked`` False
    by default. So does this one by handing everything on.

    Args:
        gradcheck: the function to extend.
    """

    @functools.wraps(gradcheck)
    def check(func: Callable[..., Any], inputs: Any, **options: Any) -> bool:
        """``gradcheck`` of a function, with sparse inputs too."""
        return gradcheck(func, inputs, **options)

    return check
