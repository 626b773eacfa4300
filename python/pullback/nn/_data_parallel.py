"""A module on several devices of one process: parts of each batch on each.

``nn/parallel/data_parallel.py`` exports this; it is here so that ``nn`` need not load what copies
between devices. Without devices the module is called as it is.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

from .modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


def _devices(given: Sequence[Any] | None) -> list[Any]:
    """The numbers of the devices that are to compute; none where there are none."""
    from ..cuda import _number_of, device_count

    if device_count() == 0:
        return []
    return list(range(device_count())) if given is None else [_number_of(each) for each in given]


def _check_place(module: Module, device: int) -> None:
    """Refuses a module with a parameter or buffer that is not on the first device."""
    from .. import device as make_device

    expected = make_device(f"cuda:{device}")
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.device != expected:
            raise RuntimeError(
                "module must have its parameters and buffers on device "
                f"{expected} (device_ids[0]) but found one of them on device: {tensor.device}"
            )


class DataParallel(Module):
    """Calls copies of a module with parts of the batch, each on its device, and joins the outputs.

    Gradients of the copies add up in the module. Without devices, and where all parts are one, the
    module itself is called.

    Args:
        module: the module, on the first device.
        device_ids: the devices; all there are unless given.
        output_device: where the outputs are joined; the first device unless given.
        dim: the dimension along which batches are taken apart.
    """

    module: Module

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.device_ids = _devices(device_ids)
        self.module = module
        if not self.device_ids:
            return
        from ..cuda import _number_of

        first = self.device_ids[0] if output_device is None else output_device
        self.output_device = _number_of(first)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module, or its copies."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.device_ids[0])
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts and not named:
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        outputs = self.parallel_apply(replicas, parts, named)
        return self.gather(outputs, self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Copies of the module, one on each device."""
        from ..autograd import is_grad_enabled
        from .parallel.replicate import replicate

        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]
    ) -> Any:
        """The arguments, split into parts for the devices."""
        from .parallel.scatter_gather import scatter_kwargs

        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(
        self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """The outputs of the copies."""
        from .parallel.parallel_apply import parallel_apply

        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The outputs, joined."""
        from .parallel.scatter_gather import gather

        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One call of :class:`DataParallel`.

    Args:
        module: the module, on the first device.
        inputs: its arguments; one that is no tuple is the only one.
        device_ids: the devices; all there are unless given.
        output_device: where the outputs are joined; the first device unless given.
        dim: the dimension along which batches are taken apart.
        module_kwargs: its keyword arguments.
    """
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    if not parallel.device_ids and device_ids:
        warnings.warn("there are no devices: the module is called as it is", stacklevel=2)
    parallel.train(module.training)
    return parallel(*inputs, **(module_kwargs or {}))


for _each in (DataParallel, data_parallel):
    _each.__module__ = f"{__package__}.parallel.data_parallel"
# (Who asks for the types of attributes looks names up in that module, which may not be loaded.)
DataParallel.__annotations__["module"] = Module
