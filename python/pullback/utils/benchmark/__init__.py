"""Measures how long a part of a program takes, and compares what was measured.

:class:`Timer` measures, :class:`Measurement` keeps the times and summarises them, :class:`Compare`
shows several as a table, :class:`Fuzzer` draws inputs. Counts of instructions need Valgrind and
PyTorch's native wrapper: they are one clear error.
"""

from __future__ import annotations

from ... import _placeholder
from .utils._measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .utils.compare import Colorize, Compare
from .utils.fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from .utils.timer import Language, Timer, timer

CallgrindStats = _placeholder.made("torch.utils.benchmark.CallgrindStats", "class")
FunctionCount = _placeholder.made("torch.utils.benchmark.FunctionCount", "class")
FunctionCounts = _placeholder.made("torch.utils.benchmark.FunctionCounts", "class")
CopyIfCallgrind = _placeholder.made("torch.utils.benchmark.CopyIfCallgrind", "class")

__all__ = [
    "CallgrindStats",
    "Colorize",
    "Compare",
    "CopyIfCallgrind",
    "FunctionCount",
    "FunctionCounts",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
