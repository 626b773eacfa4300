"""Tools around training: data loading, pictures of graphs, checkpoint files.

A name space only. `data` is imported with it, as programs expect; the others on demand.
"""

from .. import _absent, _lazy
from . import data
from ._swap import set_module, swap_tensors
from .backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)
from .cpp_backtrace import get_cpp_backtrace
from .throughput_benchmark import ThroughputBenchmark

_lazy.submodules(
    globals(),
    "_contextlib",
    "_device",
    "_import_utils",
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "backcompat",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_backtrace",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "serialization",
    "model_zoo",
    "module_tracker",
    "weak",
)

__all__ = [
    "ThroughputBenchmark",
    "data",
    "generate_methods_for_privateuse1_backend",
    "get_cpp_backtrace",
    "rename_privateuse1_backend",
    "set_module",
    "swap_tensors",
]

_absent.announce(globals())
