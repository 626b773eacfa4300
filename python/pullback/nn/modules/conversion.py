"""Changing all tensors of a module at once: dtype, device, gradients' flags.

Part of ``Module`` (``module.py``), which inherits it. Invariant: a parameter keeps its identity
through a conversion (optimisers hold on to it); only its data is exchanged. A parameter is
replaced only when the layout changes, since data of another layout cannot be put in place, and
where `pullback.__future__` says so.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _C
from ... import __future__ as _future
from ..._tensor import Tensor
from .._native import VF as _VF
from ..parameter import Parameter
from .traversal import Traversal

if TYPE_CHECKING:
    from typing_extensions import Self

    from .module import Module

__all__: list[str] = []


def no_grad() -> Any:
    """``pullback.no_grad()``, imported when first needed: autograd may be loading still."""
    from ...autograd import no_grad as context

    return context()


class Conversion(Traversal):
    """Conversions of all parameters and buffers of a module and its submodules, in place."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._apply_to_parameter(name, param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(
        self, name: str, param: Parameter, fn: Callable[[Tensor], Tensor]
    ) -> None:
        grad = param.grad
        with no_grad():
            applied = fn(param)
            grad_applied = None if grad is None else fn(grad)
        if _future.get_swap_module_params_on_conversion():
            self._swap(name, param, applied, grad_applied)
            return
        overwrite = _future.get_overwrite_module_params_on_conversion()
        if applied.layout == param.layout and not overwrite:
            param.data = applied
            owner = param
        else:
            owner = Parameter(applied, param.requires_grad)
            self._parameters[name] = owner
        if grad is None or grad_applied is None:
            return
        if owner is param and grad_applied.layout == grad.layout:
            grad.data = grad_applied
        else:
            owner.grad = grad_applied.requires_grad_(grad.requires_grad)

    def _swap(self, name: str, param: Parameter, applied: Tensor, grad_applied: Any) -> None:
        """Makes a parameter what its conversion is, and the other way round."""
        from ...utils import swap_tensors

        grad = param.grad
        try:
            param.grad = None
            swap_tensors(param, Parameter(applied, param.requires_grad))
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if grad is None:
            return
        try:
            swap_tensors(grad, grad_applied.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}.grad") from error
        param.grad = grad

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Calls ``fn`` on every submodule and then on the module itself; returns the module.

        Example::

            model.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)  # type: ignore[arg-type]
        return self

    def cuda(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to a GPU."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to an Intel GPU: an error, there are none here."""
        return self._apply(lambda tensor: tensor.to(_place("xpu", device)))

    def mtia(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to an accelerator of Meta: an error, as ``xpu``."""
        return self._apply(lambda tensor: tensor.to(_place("mtia", device)))

    def ipu(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to an accelerator of Graphcore: an error, as ``xpu``."""
        return self._apply(lambda tensor: tensor.to(_place("ipu", device)))

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def share_memory(self) -> Self:
        """Moves all parameters and buffers to memory that processes which are forked later share.

        See :meth:`Tensor.share_memory_`.
        """
        return self._apply(lambda tensor: tensor.share_memory_())

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers to ``dst_type``."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Casts floating-point parameters and buffers to ``float32``."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Casts floating-point parameters and buffers to ``float64``."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Casts floating-point parameters and buffers to ``float16``."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Casts floating-point parameters and buffers to ``bfloat16``."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves to ``device`` without copying values: the new memory is uninitialised."""
        empty_like = _VF.empty_like
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts parameters and buffers in place; returns the module.

        Forms: ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``,
        ``to(tensor)`` (its dtype and device), ``to(memory_format=...)`` (4-d and 5-d tensors).
        Only floating-point and complex tensors change dtype.

        Raises:
            TypeError: the dtype is neither floating-point nor complex.
        """
        device, dtype, non_blocking, memory_format = _C._nn._parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, "
                    f"but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development: some modules "
                    "might not work as expected with complex parameters or buffers.",
                    stacklevel=2,
                )

        def convert(tensor: Tensor) -> Tensor:
            changes = tensor.is_floating_point() or tensor.is_complex()
            options: dict[str, Any] = {}
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            try:
                return tensor.to(device, dtype if changes else None, non_blocking, **options)
            except NotImplementedError as error:
                raise _explained(error) from None

        return self._apply(convert)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` of all parameters; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or zeroes them in place.

        Args:
            set_to_none: whether ``grad`` becomes ``None`` (default) instead of zeros.
        """
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()


def _place(kind: str, device: Any) -> Any:
    """A device of a kind: the current one, or by number or name."""
    if device is None:
        return kind
    return f"{kind}:{device}" if isinstance(device, int) else device


def _explained(error: builtins.Exception) -> builtins.Exception:
    """Suggests ``to_empty`` when a tensor without data was to be copied."""
    base = "Cannot copy out of meta tensor; no data!"
    text = str(error)
    if not text.startswith(base):
        return error
    return NotImplementedError(
        f"{base} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
        f"when moving module from meta to a different device.{text[len(base) :]}"
    )
