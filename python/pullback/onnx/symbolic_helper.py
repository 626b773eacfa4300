"""What libraries decorate their export of ops with, so that they can be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _absent
from . import TensorProtoDataType

__all__ = ["cast_pytorch_to_onnx", "parse_args"]

# The names of C++'s types of numbers, and those here.
scalar_name_to_pytorch = {
    "uint8_t": "Byte",
    "int8_t": "Char",
    "double": "Double",
    "float": "Float",
    "half": "Half",
    "int": "Int",
    "int64_t": "Long",
    "int16_t": "Short",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "qint8": "QInt8",
    "quint8": "QUInt8",
    "qint32": "QInt32",
    "bfloat16": "BFloat16",
}

cast_pytorch_to_onnx = {
    "Byte": TensorProtoDataType.UINT8,
    "Char": TensorProtoDataType.INT8,
    "Double": TensorProtoDataType.DOUBLE,
    "Float": TensorProtoDataType.FLOAT,
    "Half": TensorProtoDataType.FLOAT16,
    "Int": TensorProtoDataType.INT32,
    "Long": TensorProtoDataType.INT64,
    "Short": TensorProtoDataType.INT16,
    "Bool": TensorProtoDataType.BOOL,
    "ComplexFloat": TensorProtoDataType.COMPLEX64,
    "ComplexDouble": TensorProtoDataType.COMPLEX128,
    "BFloat16": TensorProtoDataType.BFLOAT16,
    "Undefined": TensorProtoDataType.UNDEFINED,
}


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """A decorator that changes nothing: no exporter calls the function."""
    return lambda function: function


_absent.announce(globals())
