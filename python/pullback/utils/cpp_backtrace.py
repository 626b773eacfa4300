"""The calls of native code that led here, which are not looked up."""

from __future__ import annotations

__all__ = ["get_cpp_backtrace"]


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """A text with the calls of native code: the Python frames, whose caller native code is.

    Args:
        frames_to_skip: how many of the innermost are left out.
        maximum_number_of_frames: how many there are at most.
    """
    import traceback

    frames = traceback.extract_stack()[:-1][::-1]
    chosen = frames[frames_to_skip : frames_to_skip + maximum_number_of_frames]
    return "".join(
        f"frame #{number}: {frame.name} ({frame.filename}:{frame.lineno})\n"
        for number, frame in enumerate(chosen)
    )
