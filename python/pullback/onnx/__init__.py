"""Programs exported to ONNX, which needs a captured graph: only the predicate works."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from .. import _absent

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "is_in_onnx_export"]


class OperatorExportTypes(Enum):
    """The older exporter's way to write ops that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(Enum):
    """The training mode in which a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Takes how an op is to be exported, which nothing asks for."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undoes :func:`register_custom_op_symbolic`."""


def is_in_onnx_export() -> bool:
    """Whether a program is being exported: never."""
    return False


_absent.announce(globals())
