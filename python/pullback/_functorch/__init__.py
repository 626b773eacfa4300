"""The transforms under the names of PyTorch's private modules, which libraries import.

Each module gives what :mod:`pullback.func` does, or (`make_functional`) what came before it.
"""

from __future__ import annotations

from .. import _absent, _lazy

_lazy.submodules(
    globals(),
    "apis",
    "autograd_function",
    "batch_norm_replacement",
    "deprecated",
    "eager_transforms",
    "functional_call",
    "make_functional",
    "utils",
    "vmap",
)

_absent.announce(globals())
