"""Optimisers and learning-rate schedules.

An optimiser holds groups of parameters with their options and moves the parameters
by their gradients. The arithmetic of a step is native and runs over whole lists of
tensors; this package holds the bookkeeping: groups, state, hooks and checkpoints.

Start with `optimizer.Optimizer` (the base class), then `sgd.SGD`, `adam.Adam` and
`adamw.AdamW`. Schedules live in `lr_scheduler`.
"""

from .. import _absent
from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

_absent.announce(globals())
