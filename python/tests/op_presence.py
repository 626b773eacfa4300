"""Marks for tests of what needs ops, or a device, that may be missing still.

While one of the ops is missing, such a test must fail for that reason; once all are there it is a
test like any other.
"""

from __future__ import annotations

from typing import Any

import pytest

import pullback


def _is_here(name: str) -> bool:
    value: Any = pullback
    for part in name.split("."):
        value = getattr(value, part, None)
    return value is not None


def _has_meta() -> bool:
    try:
        pullback.empty(1, device="meta")
    except RuntimeError:
        return False
    return True


def needs_meta() -> pytest.MarkDecorator:
    """The mark for tests that need the device of tensors without memory."""
    return pytest.mark.xfail(
        not _has_meta(), raises=RuntimeError, reason="missing: device meta", strict=True
    )


def needs(*names: str) -> pytest.MarkDecorator:
    """The mark.

    Args:
        names: of ops, as ``"nn.functional.interpolate"``.
    """
    missing = [name for name in names if not _is_here(name)]
    return pytest.mark.xfail(
        bool(missing), raises=AttributeError, reason=f"missing: {', '.join(missing)}", strict=True
    )
