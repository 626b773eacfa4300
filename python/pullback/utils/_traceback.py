"""The stack of a program at one moment, kept cheaply: code and line numbers without variables."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "shorten_filename",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class CapturedTraceback:
    """The frames of a thread at one moment, which are read into text when they are asked for."""

    __slots__ = ("_frames",)

    def __init__(self, frames: list[tuple[CodeType, int]]) -> None:
        """Made by :meth:`extract`: code and line of each frame, the outermost first."""
        self._frames = frames

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The frames of the caller and its callers.

        Args:
            script: frames of TorchScript as well, of which there are none.
            cpp: frames of compiled code as well, which are not read here.
            skip: how many of the innermost ones to leave out.
        """
        return captured(sys._getframe(1), skip)

    def cleanup(self) -> None:
        """Forgets the frames."""
        self._frames = []

    def summary(self) -> traceback.StackSummary:
        """The frames as the standard library has them, the outermost first."""
        return traceback.StackSummary.from_list(
            [(code.co_filename, line, code.co_name, None) for code, line in self._frames]
        )

    def format(self) -> list[str]:
        """The frames as text, as a traceback shows them."""
        return self.summary().format()

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback | None]) -> list[list[str] | None]:
        """:meth:`format` of several; None stays."""
        return [None if tb is None else tb.format() for tb in tbs]


def captured(frame: FrameType | None, skip: int = 0) -> CapturedTraceback:
    """The frames from this one outwards."""
    frames: list[tuple[CodeType, int]] = []
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return CapturedTraceback(frames[skip:][::-1])


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A file's name, relative to a folder (the one that has the package) if it lies below that."""
    base = os.path.dirname(_PACKAGE) if base is None else base
    return os.path.relpath(fn, base) if fn.startswith(os.path.join(base, "")) else fn


def format_frame(
    frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False
) -> str:
    """A frame as ``FILE:LINE in FUNCTION``, with its text if ``line``."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame of a traceback as ``FILE:LINE in FUNCTION``."""
    return format_frame(traceback.extract_tb(tb)[-1])
