"""The steps of the optimisers as functions on lists of tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from . import _adafactor, _functional, _muon

__all__ = [
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "muon",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]

_F = TypeVar("_F", bound=Callable[..., Any])


def _here(function: _F) -> _F:
    """The function, documented as one of this module; the original keeps its own module."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    wrapper.__module__ = __name__
    return wrapper  # type: ignore[return-value]


adadelta = _here(_functional.adadelta)
adafactor = _here(_adafactor.adafactor)
adagrad = _here(_functional.adagrad)
adam = _here(_functional.adam)
adamax = _here(_functional.adamax)
adamw = _here(_functional.adamw)
asgd = _here(_functional.asgd)
muon = _here(_muon.muon)
nadam = _here(_functional.nadam)
radam = _here(_functional.radam)
rmsprop = _here(_functional.rmsprop)
rprop = _here(_functional.rprop)
sgd = _here(_functional.sgd)
sparse_adam = _here(_functional.sparse_adam)
