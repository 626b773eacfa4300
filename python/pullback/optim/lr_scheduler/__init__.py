"""Learning-rate schedules: objects that set `group["lr"]` of an optimiser step by step.

Call `scheduler.step()` after `optimizer.step()`. `schedule` holds the base class,
`decay` the one-way rules, `cycle` those that go up and down (and may move the momentum),
`plateau` the one that listens to a metric, `chain` those made of other schedules.
"""

from ... import _absent
from ..optimizer import Optimizer as Optimizer
from .chain import ChainedScheduler, SequentialLR
from .cycle import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedule import LRScheduler

_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_absent.announce(globals())
