"""The older name of ``torch.amp.GradScaler("cuda")``."""

from __future__ import annotations

import warnings

from ...amp import grad_scaler as _grad_scaler
from ...amp.grad_scaler import OptState as OptState
from ...amp.grad_scaler import _refresh_per_optimizer_state as _refresh_per_optimizer_state

__all__ = ["GradScaler"]


class GradScaler(_grad_scaler.GradScaler):
    """See ``torch.amp.GradScaler``, whose first argument is ``"cuda"`` here."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. "
            "Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
