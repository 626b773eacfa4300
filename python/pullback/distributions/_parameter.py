"""Parameters of several distributions: probabilities, which may be given as logits.

Invariant: what was given is an attribute, the other is computed when first asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .. import Size
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def forwarded(owner: str, name: str) -> Any:
    """The property ``name`` of the attribute ``owner``."""

    def get(self: Any) -> Any:
        return getattr(getattr(self, owner), name)

    get.__doc__ = f"``{name}`` of the distribution that this one is made from."
    return property(get)


def check_one_given(probs: Any, logits: Any) -> None:
    """Refuses both parameters, and none.

    Raises:
        ValueError: unless one of the two is None.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class OneParameter(Distribution):
    """A distribution with a parameter that is either ``probs`` or ``logits``."""

    _batched: ClassVar[tuple[str, ...]] = ("probs", "logits", "_param")
    _param: Any
    _is_binary = True

    def _give(self, probs: Any, logits: Any, **others: Any) -> Size:
        """Keeps the parameter that was given and broadcasts others with it; gives the shape."""
        check_one_given(probs, logits)
        given = {"logits": logits} if probs is None else {"probs": probs}
        *rest, self._param = broadcast_all(*others.values(), *given.values())
        for name, value in zip(others, rest, strict=True):
            setattr(self, name, value.type_as(self._param))
        setattr(self, "probs" if logits is None else "logits", self._param)
        return self._param.size()  # type: ignore[no-any-return]

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the odds, or of the probabilities of categories."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()  # type: ignore[no-any-return]

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)


class OfCategories(Distribution):
    """A distribution made of a :class:`Categorical`, whose parameters it has."""

    _categorical: Any
    probs = forwarded("_categorical", "probs")
    logits = forwarded("_categorical", "logits")
    param_shape = forwarded("_categorical", "param_shape")
    _param = forwarded("_categorical", "_param")

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)
