"""What to collect of each kind of activity, as ``torch.profiler.profile(activities=...)`` takes it.

The CPU's activities are recorded whole; the names of their types are checked. Counters and traces
of devices need a device, and there is none in this build.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = [
    "CuspyConfig",
    "PerformanceMetricsConfig",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "parsed",
]

# The types of events that count as the CPU's. (Those of devices are not there to be checked.)
_CPU_TYPES = frozenset(
    {
        "CPU_INSTANT_EVENT",
        "CPU_OP",
        "CUDA_DRIVER",
        "CUDA_RUNTIME",
        "EXTERNAL_CORRELATION",
        "PRIVATEUSE1_DRIVER",
        "PRIVATEUSE1_RUNTIME",
        "PYTHON_FUNCTION",
        "USER_ANNOTATION",
        "XPU_DRIVER",
        "XPU_RUNTIME",
    }
)


class ProfilerActivity(Enum):
    """What can be profiled, on machines that have it."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class _ProfilerExtensionConfig(ABC):
    """Settings that the profiler of a device gets as texts."""

    @abstractmethod
    def _to_config_entries(self) -> dict[str, str]:
        """The settings, as names and texts."""


@dataclass(frozen=True)
class CuspyConfig(_ProfilerExtensionConfig):
    """What to collect of a CUDA device by Cuspy; without such a device it has no effect.

    Args:
        enable_cuda_sync_events: where the program waited for the device.
        enable_environment_counters: clocks, temperature and power.
        enable_graph_dependencies: the edges of CUDA graphs.
        enable_event_node_ids: which events belong to which nodes of CUDA graphs.
    """

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False

    def _to_config_entries(self) -> dict[str, str]:
        return {}


@dataclass
class PerformanceMetricsConfig(_ProfilerExtensionConfig):
    """Which counters of a device to sample, and how often; a profile refuses it without a device.

    Args:
        metric_names: the counters, by the names of the device's maker.
        sampling_interval_ms: the time between two samples; a millisecond if not given.
        lookback_window_ms: for how long samples are kept; ten seconds if not given.
    """

    metric_names: list[str]
    sampling_interval_ms: float | None = None
    lookback_window_ms: float | None = None

    def _to_config_entries(self) -> dict[str, str]:
        times = {
            "SAMPLING_INTERVAL_MS": self.sampling_interval_ms,
            "LOOKBACK_WINDOW_MS": self.lookback_window_ms,
        }
        entries = {"PERFORMANCE_METRICS": ",".join(self.metric_names)}
        for name, time in times.items():
            if time is not None:
                entries[f"PERFORMANCE_METRICS_{name}"] = str(time)
        return entries


@dataclass
class ProfilerActivityConfig:
    """What to collect of one kind of activity.

    Args:
        activity_types: the types of events; those that are usual if None, none if empty.
        profiler_configs: further settings, such as :class:`CuspyConfig`.
    """

    activity_types: list[str] | None = None
    profiler_configs: list[Any] = field(default_factory=list)

    def _get_profiler_config(self, config_type: type) -> Any:
        """The first of the further settings that is of this class."""
        found = (config for config in self.profiler_configs if isinstance(config, config_type))
        return next(found, None)


def parsed(activities: Iterable[Any]) -> dict[ProfilerActivity, ProfilerActivityConfig]:
    """The kinds of activity that a program named, each with what to collect of it.

    Args:
        activities: of each item, a kind, or a dict of kinds with their types of events.

    Raises:
        TypeError: for what is neither.
        ValueError: if a kind is named twice.
        RuntimeError: for an unknown type of events, and for counters of a device.
        AssertionError: if there are no items.
    """
    found: dict[ProfilerActivity, ProfilerActivityConfig] = {}
    for item in activities:
        if isinstance(item, ProfilerActivity):
            item = {item: None}
        elif not isinstance(item, dict):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for kind, config in item.items():
            if kind in found:
                raise ValueError(f"Activity {kind} specified more than once")
            if not isinstance(config, ProfilerActivityConfig):
                config = ProfilerActivityConfig(config)
            _check(kind, config)
            found[kind] = config
    if not found:
        raise AssertionError("No valid profiler activities found")
    return found


def _check(kind: ProfilerActivity, config: ProfilerActivityConfig) -> None:
    for name in config.activity_types or ():
        if kind is ProfilerActivity.CPU and name not in _CPU_TYPES:
            raise RuntimeError(f"Unknown or non-member activity type name: {name!r}")
    if config._get_profiler_config(PerformanceMetricsConfig) is not None:
        raise RuntimeError("PerformanceMetricsConfig: this build has no device with counters")
