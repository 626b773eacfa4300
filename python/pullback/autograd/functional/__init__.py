"""Derivatives of whole functions: products with a Jacobian or Hessian, and the matrices themselves.

Each function here calls ``func`` once on stand-ins for the inputs, walks the graph that this
recorded with :func:`pullback.autograd.grad`, and gives results in the structure of the tensors that
went in or came out: a tuple where there was a tuple, else one tensor. The files: ``argument`` for
what comes in, ``gradient`` for what the engine finds, ``product`` and ``matrix`` for the functions.
"""

from .matrix import _construct_standard_basis_for as _construct_standard_basis_for
from .matrix import hessian, jacobian
from .product import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
