"""Scaling of losses, so that small gradients do not vanish in ``float16``.

The loss is multiplied by a factor, the gradients are divided by it before the optimiser uses them.
A step whose gradients overflowed is left out and makes the factor smaller; many good steps in a row
make it larger.

P. Micikevicius et al., "Mixed Precision Training", 2018, section 3.2.
"""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..optim import Optimizer

__all__ = ["GradScaler", "OptState"]

_VF: Any = _C._VariableFunctions


class OptState(Enum):
    """The progress of an optimiser in an iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """The state of an optimiser at the beginning of an iteration."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses and unscales gradients, and finds the factor by trying.

    In each iteration: ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)`` and
    ``scaler.update()``; gradients are to be looked at, or clipped, after
    ``scaler.unscale_(optimizer)``.

    Args:
        device: the type of devices that the tensors are on; ``"cuda"``, which this build does not
            have, disables the scaler with a warning.
        init_scale: the factor at first.
        growth_factor: by which it grows after ``growth_interval`` good steps in a row.
        backoff_factor: by which it shrinks after a step with infinities or NaN.
        growth_interval: see there.
        enabled: False makes a scaler that does nothing but call ``optimizer.step()``.

    Raises:
        AssertionError: unless ``growth_factor > 1`` and ``backoff_factor < 1``.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2 if type(self) is GradScaler else 3,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        # Both are made by the first use of `scale`.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def _need_scale(self, function: str) -> tuple[Tensor, Tensor]:
        """The factor and the count of good steps.

        Raises:
            AssertionError: before the first use of :meth:`scale`.
        """
        if self._scale is None or self._growth_tracker is None:
            missing = "_scale" if self._scale is None else "_growth_tracker"
            raise AssertionError(
                f"Attempted {function} but {missing} is None.  This may indicate your script did "
                "not use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> Tensor:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._growth_tracker = _VF.full((), self._init_growth_tracker, dtype=_C.int32, device=dev)
        scale: Tensor = _VF.full((), self._init_scale, dtype=_C.float32, device=dev)
        self._scale = scale
        return scale

    def scale(self, outputs: Any) -> Any:
        """The outputs multiplied by the factor; as they are if the scaler is disabled.

        Args:
            outputs: a tensor, or an iterable of such; lists and tuples keep their type.

        Raises:
            ValueError: for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.TensorBase):
            scale = self._scale
            if scale is None:
                scale = self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * scale
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        if not isinstance(outputs, (list, tuple)):
            return scaled
        make = getattr(type(outputs), "_make", type(outputs))
        return make(scaled)

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: float, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiplies the gradients by ``inv_scale``; ``found_inf`` says if one overflowed."""
        grads = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, _C.TensorBase):
                    raise AssertionError(
                        f"expected param to be torch.Tensor, got {type(param).__name__}"
                    )
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype is _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.append(param.grad)
        with no_grad():
            for grad in grads:
                # (What a sparse gradient does not specify is zero; equal coordinates add up.)
                values = grad.coalesce().values() if grad.is_sparse else grad
                if not bool(values.isfinite().all()):
                    found_inf.fill_(1.0)
                if inv_scale != 1.0:
                    grad.mul_(inv_scale)
        return {found_inf.device: found_inf} if grads else {}

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimiser's parameters by the factor.

        Raises:
            RuntimeError: the second time in an iteration, or after :meth:`step`.
            AssertionError: before the first use of :meth:`scale`.
            ValueError: for gradients of ``float16``.
        """
        if not self._enabled:
            return
        scale, _ = self._need_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = float(scale.double().reciprocal().float())
        found_inf = _VF.zeros((), dtype=_C.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, inverse, found_inf, allow_fp16=False
        )
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        """Looks for infinities and NaN in the gradients, and changes none."""
        scale, _ = self._need_scale("_check_inf_per_device")
        found_inf = _VF.zeros((), dtype=_C.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, 1.0, found_inf, allow_fp16=True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        found: dict[Any, Tensor] = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients unless that was done, and steps unless one overflowed.

        Returns:
            What ``optimizer.step(*args, **kwargs)`` gives; None if it was left out.

        Raises:
            RuntimeError: the second time in an iteration, or for a ``closure``.
            AssertionError: before the first use of :meth:`scale`, or without gradients.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling(optimizer, state, *args, **kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_scaling(
        self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The step of an optimiser that unscales, and leaves itself out, on its own."""
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer; it will set the attributes grad_scale and found_inf instead.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale, _ = self._need_scale("step")
        given = getattr(optimizer, "grad_scale", None)
        if state["stage"] is not OptState.UNSCALED:
            given = scale if given is None else scale * given
        optimizer.grad_scale = given
        found = state["found_inf_per_device"].values()
        optimizer.found_inf = sum(found, start=_VF.zeros_like(scale))
        try:
            result = optimizer.step(*args, **kwargs)
            state["stage"] = OptState.STEPPED
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends an iteration: adapts the factor, or sets it to ``new_scale``.

        Raises:
            AssertionError: if no optimiser was stepped or unscaled, or for a ``new_scale`` that is
                neither a float nor a tensor of one element that does not require grad.
        """
        if not self._enabled:
            return
        scale, tracker = self._need_scale("update")
        if new_scale is None:
            self._adapt(scale, tracker)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            is_fit = (
                isinstance(new_scale, _C.TensorBase)
                and new_scale.device.type == self._device
                and new_scale.numel() == 1
                and not new_scale.requires_grad
            )
            if not is_fit:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _adapt(self, scale: Tensor, tracker: Tensor) -> None:
        states = self._per_optimizer_states.values()
        found = [each for state in states for each in state["found_inf_per_device"].values()]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        with no_grad():
            if any(each.item() for each in found):
                scale.mul_(self._backoff_factor)
                tracker.zero_()
            elif int(tracker) + 1 < self._growth_interval:
                tracker.add_(1)
            else:
                # A factor that is not a number any more would never recover.
                grown = scale * self._growth_factor
                if bool(grown.isfinite()):
                    scale.copy_(grown)
                tracker.zero_()

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The factor; 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """The growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Replaces the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Replaces the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of consecutive good steps before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Replaces the growth interval."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state, best asked for after :meth:`update`; empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what :meth:`state_dict` gave; does nothing if the scaler is disabled.

        Raises:
            RuntimeError: for the empty state of a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            # The numbers; the tensors are made again when they are needed.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
