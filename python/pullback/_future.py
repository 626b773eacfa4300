"""Values that arrive later, on whatever thread, with callbacks and waiting for several."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from . import _C

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or an error, that is given once and can be waited for.

    Args:
        devices: devices whose work the value depends on, each with its number.

    Raises:
        ValueError: for a device without a number.
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        for device in devices or ():
            if _C.device(device).index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
        self._changed = threading.Condition()
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Whether the value or the error is there."""
        return self._is_done

    def wait(self) -> T:
        """Waits for the value.

        Raises:
            BaseException: the error that was given in place of a value.
        """
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> T:
        """The value, which must be there.

        Raises:
            RuntimeError: if nothing is there yet.
            BaseException: the error that was given in place of a value.
        """
        if not self._is_done:
            raise RuntimeError("the Future is not completed: wait() waits for its value")
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def set_result(self, result: T) -> None:
        """Gives the value, and runs the callbacks.

        Raises:
            RuntimeError: if it has a value or an error.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Gives an error in place of a value.

        Raises:
            AssertionError: for what is no exception.
            RuntimeError: if it has a value or an error.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error, self._is_done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback()

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what ``callback(self)`` returns, which is called when this one is done."""
        result: Future[Any] = Future()

        def run() -> None:
            try:
                value = callback(self)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                told = RuntimeError(f"Got the following error when running the callback: {text}")
                told.__cause__ = error
                result.set_exception(told)
            else:
                result.set_result(value)

        self._when_done(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls ``callback(self)`` when this one is done; an error in it is printed."""

        def run() -> None:
            try:
                callback(self)
            except Exception:
                print("Got the following error when running the callback:", file=sys.stderr)
                traceback.print_exc()

        self._when_done(run)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, done when all of them are, with or without errors."""
    result: Future[list[Future[Any]]] = Future()
    left = len(futures)
    lock = threading.Lock()

    def count() -> None:
        nonlocal left
        with lock:
            left -= 1
            is_last = left == 0
        if is_last:
            result.set_result(futures)

    if not futures:
        result.set_result(futures)
    for future in futures:
        future._when_done(count)
    return result


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Waits for all of them, and gives their values.

    Raises:
        BaseException: the error of the first that has one.
    """
    return [future.wait() for future in collect_all(futures).wait()]
