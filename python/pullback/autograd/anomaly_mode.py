"""Anomaly mode: backward says where the op was called whose gradient failed, and refuses NaN."""

from __future__ import annotations

import warnings

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Mode:
    """Restores the mode that was set when the object was made."""

    def __init__(self) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()

    def __exit__(self, *exception: object) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly(_Mode):
    """Notes down, for every node of the graph, the stack of the call that made it.

    When a node fails in backward, a warning shows that stack; in double backward, so does one for
    the node that was being run when it was made. With ``check_nan``, a gradient that has NaN is an
    error. Both are slow: for debugging only. The mode is one for all threads.

    Args:
        check_nan: whether gradients are searched for NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime "
            "and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _C.set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly(_Mode):
    """Turns anomaly mode on or off: as a statement, or for a ``with`` block.

    Args:
        mode: whether it is on, from this call on.
        check_nan: as for :class:`detect_anomaly`.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass
