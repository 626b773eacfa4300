"""The older name of ``torch.autocast("cpu")``."""

from __future__ import annotations

import warnings

from ... import _C
from ...amp import autocast_mode as _autocast_mode

__all__ = ["autocast"]


class autocast(_autocast_mode.autocast):
    """See ``torch.autocast``, whose first argument is ``"cpu"`` here."""

    def __init__(
        self, enabled: bool = True, dtype: _C.dtype = _C.bfloat16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype, enabled, cache_enabled)
