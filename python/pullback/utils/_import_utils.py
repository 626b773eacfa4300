"""Packages that may be missing."""

from __future__ import annotations

from types import ModuleType

__all__: list[str] = []


def import_dill() -> ModuleType | None:
    """The package ``dill``, without what it does to ``pickle``; None if it is missing."""
    try:
        import dill  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    dill.extend(use_dill=False)
    found: ModuleType = dill
    return found
