"""Names of types for annotations, as ``torch.types`` has them.

The names with an underscore are for classes whose methods or properties are called like the type:
within a tensor class ``float`` is a method and ``dtype`` a property.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from . import _absent
from ._C import Size
from ._C import device as _device
from ._C import dtype as _dtype
from ._C import layout as _layout

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["Device", "DeviceLikeType", "Number"]

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
DeviceLikeType: TypeAlias = builtins.str | _device | builtins.int
Device: TypeAlias = DeviceLikeType | None

__all__ += ["_bool", "_complex", "_device", "_dtype", "_float", "_int", "_layout", "_size"]

_absent.announce(globals())
