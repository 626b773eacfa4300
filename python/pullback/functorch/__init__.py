"""The package ``functorch``, which ``torch.func`` came from, for programs that still import it.

Under :func:`pullback.as_torch`, ``import functorch`` means this one. What compiles programs
(``functorch.compile``) is not part of it.
"""

from __future__ import annotations

from .. import __version__ as __version__
from .. import _lazy
from .._functorch.deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from .._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from ..fx.experimental.proxy_tensor import make_fx
from . import einops as einops
from . import experimental as experimental

_lazy.submodules(globals(), "dim")

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
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
    "make_fx",
    "vjp",
    "vmap",
]
