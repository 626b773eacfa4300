"""The version as PyTorch gives it: a string that compares by version numbers (PEP 440).

Programs ask ``torch.__version__ >= "2.0"``, or take it apart as text; both work. Nothing but the
standard library is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from .version import __version__ as internal_version

__all__ = ["TorchVersion"]

_FORM = re.compile(
    r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_number>\d*))?
    (?P<post>-(?P<post_bare>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_BEFORE, _AFTER = float("-inf"), float("inf")


def _order(text: str) -> tuple[Any, ...] | None:
    """The key by which versions are compared; None for text that is not a version."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    release = [int(number) for number in found["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    pre: tuple[float, ...] = (_AFTER,)
    if found["pre"]:
        pre = (_PRE[found["pre"].lower()], int(found["pre_number"] or 0))
    elif found["dev"] and not found["post"]:
        # (A development version of a release comes before its first candidates.)
        pre = (_BEFORE,)
    post = int(found["post_bare"] or found["post_number"] or 0) if found["post"] else _BEFORE
    dev = int(found["dev_number"] or 0) if found["dev"] else _AFTER
    # A number in a local version sorts after a word, and both sort after nothing.
    parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    local = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]
    return (int(found["epoch"] or 0), release, pre, post, dev, local)


class TorchVersion(str):
    """A version that compares with text, tuples of numbers and other versions.

    What is no version is compared as text.

    >>> TorchVersion("1.10.0a") > "1.9.1", TorchVersion("2.15.0") > (2, 9)
    (True, True)
    """

    __slots__ = ()

    def _compare(self, other: Any, operation: str) -> bool:
        text = other
        if isinstance(other, Iterable) and not isinstance(other, str):
            text = ".".join(str(part) for part in other)
        own = _order(str(self))
        others = _order(text) if isinstance(text, str) else None
        if own is None or others is None:
            return cast("bool", getattr(str, operation)(self, other))
        return cast("bool", getattr(own, operation)(others))

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, "__ge__")

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> bool:
        is_equal = self == other
        return is_equal if is_equal is NotImplemented else not is_equal

    # As versions do, equal texts share a hash; versions that are written otherwise need not.
    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
