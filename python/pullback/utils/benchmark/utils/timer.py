"""Measures how long statements take."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from time import perf_counter as timer
from typing import Any

from .... import _placeholder
from ._measurement import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement of Python, on one thread unless more are asked for.

    Args:
        stmt: the statement.
        setup: what runs once before it.
        global_setup: what C++ would have at its top.
        timer: the clock, in seconds.
        globals: the names that the statement knows.
        label: what is measured, for people, as the following.
        sub_label: of which kind.
        description: in which variant.
        env: in which environment.
        num_threads: how many threads compute.
        language: Python.

    Raises:
        NotImplementedError: for C++.
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if language in (Language.CPP, "cpp", "c++"):
            refusal = _placeholder.refusal_of("torch.utils.cpp_extension")
            assert refusal is not None
            raise NotImplementedError(refusal.text("Timer(language='c++')"))
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"unknown language: {language!r}")
        if not isinstance(stmt, str):
            raise ValueError("Currently, only a `str` stmt is supported.")
        if global_setup:
            raise ValueError(
                "global_setup is C++ only, got `"
                f"{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        names = dict(globals or {})
        # (As in PyTorch, statements know the library.)
        names.setdefault("torch", __import__(__name__.partition(".")[0]))
        stmt, setup = (textwrap.dedent(text).strip("\n") for text in (stmt, setup))
        self._language = Language.PYTHON
        self._globals = names
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            global_setup=global_setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _seconds(self, number: int) -> float:
        # (A clock that stands still would never let a block be long enough.)
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measures so many runs as one time, after some that do not count."""
        with set_torch_threads(self._task_spec.num_threads):
            self._seconds(max(number // 100, 2))
            return Measurement(number, [self._seconds(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not there: :meth:`blocked_autorange` measures several times.

        Raises:
            NotImplementedError: always, as in PyTorch.
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Not there: :meth:`blocked_autorange` chooses the number.

        Raises:
            NotImplementedError: always, as in PyTorch.
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many runs make a time beside which the clock's own is small."""
        overhead = min(self._seconds(0) for _ in range(5))
        number = 1
        while True:
            taken = self._seconds(number)
            is_long = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if taken > min_run_time or is_long:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks of runs until they took a while.

        Args:
            callback: is told of each block: the number of runs and the seconds.
            min_run_time: how many seconds all blocks take at least.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time or not times:
                times.append(self._seconds(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measures blocks of runs until their times are close to each other.

        Args:
            threshold: what part of the median the quartiles' distance may be.
            min_run_time: how many seconds all blocks take at least.
            max_run_time: after how many it ends whatever the times are.
            callback: is told of each block: the number of runs and the seconds.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times: list[float] = []
            result = Measurement(number, times, self._task_spec)
            while True:
                times.append(self._seconds(number))
                if callback is not None:
                    callback(number, times[-1])
                total = sum(times)
                is_enough = total >= min_run_time and len(times) > 3
                if total >= max_run_time or (is_enough and result.meets_confidence(threshold)):
                    return result

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Would count instructions.

        Raises:
            NotImplementedError: always.
        """
        refusal = _placeholder.refusal_of("torch.utils.benchmark.CallgrindStats")
        assert refusal is not None
        raise refusal.error(refusal.text("Timer.collect_callgrind"))
