"""The ops of libraries whose packages bring them compiled for PyTorch, written in Python.

Such a package (torchvision, torchaudio) loads a file of machine code by ``torch.ops.load_library``,
which has ops that its Python code calls. The file cannot be loaded here; what it has is defined
instead, under the same names and signatures, over ops of this package. Of a file that is not in the
table nothing is known, and loading it is an error.
"""

from __future__ import annotations

import importlib
import os
from pathlib import PurePath

__all__ = ["define"]

# The defining modules, by the folder of the package and the first part of the file's name.
_MODULES = {
    ("torchvision", "_C"): "torchvision",
    ("torchvision", "_C_stable"): "torchvision",
    ("torchaudio", "_torchaudio"): "torchaudio",
    ("torchaudio", "libtorchaudio"): "torchaudio",
}


def define(path: str | os.PathLike[str]) -> bool:
    """Defines what a compiled library has; whether it is one whose ops are known."""
    pure = PurePath(os.fspath(path))
    file = pure.name.partition(".")[0]
    for package, name in _MODULES:
        if file == name and package in pure.parts[:-1]:
            importlib.import_module(f".{_MODULES[package, name]}", __name__)
            return True
    return False
