"""Names of types for annotations, as ``torch.types`` has them.

The names with an underscore are for classes whose methods or properties are called like the type:
within a tensor class ``float`` is a method and ``dtype`` a property.
"""

from __future__ import annotations

import builtins
import os
from typing import IO, TYPE_CHECKING, Any

from . import _absent
from ._C import Size
from ._C import device as _device
from ._C import dtype as _dtype
from ._C import layout as _layout

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["Device", "DeviceLikeType", "FileLike", "Number", "Storage"]

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
DeviceLikeType: TypeAlias = builtins.str | _device | builtins.int
Device: TypeAlias = DeviceLikeType | None
FileLike: TypeAlias = builtins.str | os.PathLike[builtins.str] | IO[builtins.bytes]


class Storage:
    """For annotations: a storage of a dtype, as ``Tensor.storage()`` returns one.

    Raises:
        TypeError: whenever it is called; `torch.FloatStorage` and its kin make typed storages.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Storage:
        """Makes nothing."""
        raise TypeError("types.Storage is for annotations: use torch.UntypedStorage")


__all__ += ["_bool", "_complex", "_device", "_dtype", "_float", "_int", "_layout", "_size"]

_absent.announce(globals())
