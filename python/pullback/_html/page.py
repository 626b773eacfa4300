"""What all pieces share: escaped text, sizes in words, and a frame with its style.

The style stands on each element, since notebooks clean what they store of style sheets; colours are
half transparent, so that they do on a light page and on a dark one.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

__all__ = ["bytes_text", "count_text", "dtype_text", "escape", "frame", "muted", "row", "table"]

_FRAME = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:60em"
_MUTED = "opacity:0.65"
_CELL = "text-align:left;padding:1px 12px 1px 0;border:none"


def escape(text: object) -> str:
    """Text as HTML, quotation marks too."""
    return html.escape(str(text), quote=True)


def frame(*parts: str) -> str:
    """One piece of HTML around the parts."""
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def muted(text: str) -> str:
    """Text (escaped before) that steps back."""
    return f'<span style="{_MUTED}">{text}</span>'


def row(name: str, value: str) -> str:
    """A row of a table: what it is (plain), and HTML."""
    return (
        f'<tr style="background:none"><th style="{_CELL};font-weight:normal;{_MUTED}">'
        f'{escape(name)}</th><td style="{_CELL}">{value}</td></tr>'
    )


def table(rows: Iterable[str]) -> str:
    """A table without lines."""
    return f'<table style="border:none;border-collapse:collapse">{"".join(rows)}</table>'


def dtype_text(dtype: Any) -> str:
    """A dtype's name without its module."""
    return str(dtype).rpartition(".")[2]


def count_text(count: int, name: str) -> str:
    """A number with its noun: ``1 parameter``, ``1,200 parameters``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def bytes_text(count: float) -> str:
    """A number of bytes with three digits or so."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1024
    return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.3g} {unit}"
