"""A module whose gradients are means over processes: in a group of one, its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Calls a module; each gradient is the mean of those of the processes of a group of one.

    The module is the part ``module``: parameters have that prefix in state dicts.

    Args:
        module: the module, with a parameter that requires grad.
        device_ids: must be None or empty: the module is in main memory.
        output_device: must be None.
        dim: along which dimension inputs would be scattered.
        broadcast_buffers: the former name of ``forward_sync_buffers``: a warning.
        init_sync: whether parameters would be sent at first.
        process_group: the group; that of all processes unless given.
        bucket_cap_mb: how much would be sent at once.
        find_unused_parameters: whether parameters may have no gradient.
        check_reduction: has no meaning any more.
        gradient_as_bucket_view: whether gradients would be views of what is sent.
        static_graph: whether every iteration uses the same parameters.
        delay_all_reduce_named_params: names and parameters whose gradients would be sent later:
            they are added to those that are ignored.
        param_to_hook_all_reduce: the parameter whose gradient would start that; given with them.
        mixed_precision: must be None; see ``torch.autocast``.
        device_mesh: a mesh, in place of ``process_group``.
        skip_all_reduce_unused_params: whether parameters without gradient would not be sent.
        bucket_cap_mb_list: how much would be sent at once, for each message.
        batched_grad_copy: whether gradients would be copied together before they are sent.
        forward_sync_buffers: whether buffers would be sent before each forward; so unless given.
        lazy_bucket_allocation: whether memory for what is sent would be asked for late.

    Raises:
        ValueError: before there is a group, for devices, and for one of the parameters of delays
            without the other.
        RuntimeError: if no parameter requires grad.
        TypeError: for what is no module.
        NotImplementedError: for ``mixed_precision``.
    """

    module: Module

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        lazy_bucket_allocation: bool = False,
    ) -> None:
        super().__init__()
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the "
                "same time."
            )
        self.process_group = _group_of(process_group, device_mesh)
        _check(module, device_ids, output_device, mixed_precision)
        self.module = module
        parameter = next(module.parameters())
        self.device, self.device_type = parameter.device, parameter.device.type
        self.device_ids, self.output_device = None, None
        self.dim = dim
        self.forward_sync_buffers = _sync_buffers(broadcast_buffers, forward_sync_buffers)
        self.batched_grad_copy = batched_grad_copy
        self.lazy_bucket_allocation = lazy_bucket_allocation
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore |= {name for name, _ in delay_all_reduce_named_params or ()}

    @property
    def broadcast_buffers(self) -> bool:
        """The former name of ``forward_sync_buffers``."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context whose gradients are not made means; in a group of one they are the same."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A context in which processes may have different numbers of batches; there is one."""
        yield

    def register_comm_hook(self, state: object, hook: Any) -> None:
        """Would let a function send gradients.

        Raises:
            NotImplementedError: always: none are sent.
        """
        raise NotImplementedError(
            "register_comm_hook: a process alone sends no gradients; change them with "
            "Tensor.register_hook"
        )

    def _set_static_graph(self) -> None:
        self.static_graph = True


def _sync_buffers(former: bool | None, given: bool | None) -> bool:
    """Whether buffers would be sent before each forward, by the parameter of either name."""
    if former is not None:
        ignored = "" if given is None else " The value of `broadcast_buffers` is ignored."
        warnings.warn(
            f"`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead.{ignored}",
            FutureWarning,
            stacklevel=3,
        )
    chosen = former if given is None else given
    return True if chosen is None else chosen


def _group_of(given: Any, mesh: Any) -> Any:
    from ... import distributed

    if given is not None and mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    return distributed._group.resolved(given if mesh is None else mesh.get_group())


def _check(module: Any, device_ids: Any, output_device: Any, mixed_precision: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"DistributedDataParallel expects a Module, but got {type(module)}")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that "
            "requires a gradient."
        )
    devices = {parameter.device for parameter in module.parameters()}
    if (device_ids or output_device is not None) and {d.type for d in devices} == {"cpu"}:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {devices}."
        )
    if mixed_precision is not None:
        raise NotImplementedError(
            "DistributedDataParallel(mixed_precision=...): not there; use torch.autocast"
        )
