"""Calls of modules at the same time, each on its device and its thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in lists, tuples and dictionaries; None if there is none."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = list(obj.items())
    if isinstance(obj, (list, tuple)):
        for each in obj:
            found = get_a_var(each)
            if found is not None:
                return found
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The outputs of modules, called at the same time.

    Args:
        modules: the modules.
        inputs: the arguments of each; what is no list or tuple is the only one.
        kwargs_tup: the keyword arguments of each.
        devices: the device of each; that of its first tensor unless given.

    Raises:
        AssertionError: the numbers of these differ.
        Exception: what the first module raised that did.
    """
    count = len(modules)
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    per_module = [None] * count if devices is None else devices
    for name, what in (("inputs", inputs), ("kwargs_tup", named), ("devices", per_module)):
        if len(what) != count:
            raise AssertionError(
                f"The number of modules {count} is not equal to the number of {name} {len(what)}"
            )
    results: list[Any] = [None] * count
    errors: list[Any] = [None] * count
    calls = [_Call(modules[i], inputs[i], named[i], per_module[i]) for i in range(count)]
    settings = _Settings()

    def work(index: int) -> None:
        try:
            with settings:
                results[index] = calls[index].run()
        except Exception as error:
            errors[index] = error

    if count == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for index, error in enumerate(errors):
        if error is not None:
            # (Exceptions take notes from Python 3.11 on.)
            note = getattr(error, "add_note", None)
            if note is not None:
                note(f"in replica {index} on device {calls[index].device}")
            raise error
    return results


class _Call:
    """A module with the arguments of its call."""

    def __init__(self, module: Module, inputs: Any, named: dict[str, Any], device: Any) -> None:
        self.module, self.named = module, named
        self.inputs = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        first = get_a_var(inputs) if device is None else None
        self.device = first.device if first is not None else device

    def run(self) -> Any:
        """Calls the module, with its device as the current one."""
        from ... import cuda
        from ...cuda import device_count

        if device_count() == 0 or self.device is None:
            return self.module(*self.inputs, **self.named)
        with cuda.device(self.device):
            return self.module(*self.inputs, **self.named)


class _Settings:
    """The settings of a thread, taken from this one: gradients and autocast."""

    def __init__(self) -> None:
        from ... import autograd, get_autocast_dtype, is_autocast_enabled

        self.grad = autograd.is_grad_enabled()
        self.autocast = {kind: is_autocast_enabled(kind) for kind in ("cpu", "cuda")}
        self.dtypes = {kind: get_autocast_dtype(kind) for kind in self.autocast}
        self._local = threading.local()

    def __enter__(self) -> None:
        from contextlib import ExitStack

        from ... import autograd
        from ...amp import autocast

        stack = ExitStack()
        stack.enter_context(autograd.set_grad_enabled(self.grad))
        for kind, enabled in self.autocast.items():
            if enabled:
                stack.enter_context(autocast(kind, dtype=self.dtypes[kind]))
        self._local.stack = stack

    def __exit__(self, *exc: object) -> None:
        self._local.stack.close()
