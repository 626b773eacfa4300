"""Profiling: ``torch.profiler.profile`` with schedules, traces and tables.

The recording itself is in ``autograd.profiler``.
"""

from __future__ import annotations

from .. import _absent
from ..autograd.profiler import kineto_available, record_function
from ..autograd.profiler_util import DeviceType
from . import itt as itt
from . import profiler as profiler
from .profiler import (
    CuspyConfig,
    ExecutionTraceObserver,
    PerformanceMetricsConfig,
    ProfilerAction,
    ProfilerActivity,
    ProfilerActivityConfig,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from .profiler import (
    _KinetoProfile as _KinetoProfile,
)

__all__ = [
    "CuspyConfig",
    "DeviceType",
    "ExecutionTraceObserver",
    "PerformanceMetricsConfig",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_absent.announce(globals())
