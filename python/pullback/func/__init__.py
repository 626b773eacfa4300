"""Function transforms: functions of functions that give gradients, tangents, batched versions.

All of them take a function of tensors and nest in any order. ``_vmap`` makes a function of one
example work on a batch, ``_reverse`` and ``_forward`` differentiate in their modes, ``_jacobian``
puts these together to matrices, ``_functional_call`` runs modules as functions of their
parameters, ``_custom`` is what custom functions do under ``vmap``. The work on tensors is native.
"""

from .. import _absent
from .._vmap import vmap
from ._forward import jvp, linearize
from ._functional_call import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from ._functionalize import functionalize
from ._jacobian import hessian, jacfwd, jacrev
from ._rearrange import rearrange
from ._reverse import grad, grad_and_value, vjp
from ._vmap import debug_unwrap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

_absent.announce(globals())
