"""Optimisers and learning-rate schedules.

An optimiser holds groups of parameters with their options and moves the parameters
by their gradients. The arithmetic of a step is native and runs over whole lists of
tensors; this package holds the bookkeeping: groups, state, hooks and checkpoints.

Start with `optimizer.Optimizer` (the base class), then `_lists.ListOptimizer` and one of its
subclasses, such as `adadelta.Adadelta`. Schedules live in `lr_scheduler`, averages of weights in
`swa_utils`, the steps as functions in `functional`.
"""

from .. import _absent
from . import lr_scheduler, swa_utils
from ._adafactor import Adafactor
from ._muon import Muon
from ._stateless import swap_in_optimizer_params_and_state
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

from . import functional  # isort: skip

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "functional",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

_absent.announce(globals())
