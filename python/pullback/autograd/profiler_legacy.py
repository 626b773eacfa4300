"""The profiler of earlier versions: ``profiler.profile``, but not to be asked too early."""

from __future__ import annotations

import os
from typing import Any

from . import profiler
from .profiler_util import EventList

__all__ = ["profile"]


class profile(profiler.profile):
    """Records what the thread runs between entering this and leaving it.

    Args:
        enabled: if false, nothing is recorded.
        use_cuda: whether to profile CUDA devices; there are none in this build.
        record_shapes: notes the sizes of inputs.
        with_flops: estimates the operations of products and convolutions.
        profile_memory: notes memory that tensors take and give back.
        with_stack: notes the lines of the program that led to each event.
        with_modules: makes an event of each module that runs.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        super().__init__(
            enabled,
            use_cuda=use_cuda,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )

    def _check_finish(self) -> None:
        if not self._is_finished:
            raise RuntimeError("Profiler didn't finish running")

    @property
    def function_events(self) -> EventList:
        """The events.

        Raises:
            RuntimeError: before the end of the recording.
        """
        self._check_finish()
        return super().function_events

    def export_chrome_trace(
        self, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None
    ) -> None:
        """Writes the events as a list that ``chrome://tracing`` shows.

        Raises:
            RuntimeError: before the end of the recording.
        """
        self.function_events.export_chrome_trace(path)
