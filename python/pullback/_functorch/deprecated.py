"""The functions of the package ``functorch``: each warns, once per line, and does its work."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .. import func as _func
from . import make_functional as _functional

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]

_F = TypeVar("_F", bound=Callable[..., Any])


def _old(function: _F, instead: str) -> _F:
    """The function with a warning that names its successor."""

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"functorch is part of torch.func: `functorch.{function.__name__}` is deprecated. "
            f"Please use `{instead}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return warned  # type: ignore[return-value]


vmap = _old(_func.vmap, "torch.vmap")
grad = _old(_func.grad, "torch.func.grad")
grad_and_value = _old(_func.grad_and_value, "torch.func.grad_and_value")
vjp = _old(_func.vjp, "torch.func.vjp")
jvp = _old(_func.jvp, "torch.func.jvp")
jacrev = _old(_func.jacrev, "torch.func.jacrev")
jacfwd = _old(_func.jacfwd, "torch.func.jacfwd")
hessian = _old(_func.hessian, "torch.func.hessian")
functionalize = _old(_func.functionalize, "torch.func.functionalize")
make_functional = _old(_functional.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _old(
    _functional.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _old(
    _functional.combine_state_for_ensemble, "torch.func.stack_module_state"
)
