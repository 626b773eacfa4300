"""Values that are kept in another form: as bfloat16 with half the bytes, or in a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

from .. import _C
from .replay import whole

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .record import Handle

# Bytes a second for a round trip, to choose between a cast and a file.
_CAST_RATE = 4e9
_FILE_RATE = 0.5e9


class _Halved:
    """Values of float32 as bfloat16."""

    def __init__(self, tensor: Tensor) -> None:
        flat = whole(tensor)
        self._kept = flat.to(_C.bfloat16)
        self._dtype = flat.dtype

    def load(self) -> Tensor:
        """The values in their own dtype, rounded."""
        return self._kept.to(self._dtype)


class _Written:
    """The bytes of a storage in a file, which is deleted with this object."""

    def __init__(self, tensor: Tensor, folder: str) -> None:
        self._dtype = tensor.dtype
        number, self._path = tempfile.mkstemp(prefix="pullback-", suffix=".saved", dir=folder)
        self._remove = weakref.finalize(self, _removed, self._path)
        with os.fdopen(number, "wb") as file:
            file.write(tensor.untyped_storage()._bytes())

    def load(self) -> Tensor:
        """The values, read back."""
        with open(self._path, "rb") as file:
            storage = _C.UntypedStorage._from_bytes(file.read())
        # (A copy, because the memory of the bytes is not the allocator's.)
        return whole(storage, self._dtype).clone()


def _removed(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


class Elsewhere:
    """Where else than in memory, as they are, values may be kept.

    Args:
        offload: ``"bf16"``, or a folder.

    Raises:
        ValueError: for a folder that is not there.
    """

    def __init__(self, offload: str | os.PathLike[str]) -> None:
        self.is_halved = offload == "bf16"
        self.folder = os.fspath(offload)
        if not self.is_halved and not os.path.isdir(self.folder):
            raise ValueError(
                f'memory_budget(): offload is "bf16" or a folder, and there is no folder '
                f"{self.folder!r}"
            )

    def cost(self, size: int, handles: list[Handle]) -> tuple[float, int, str] | None:
        """Seconds, bytes freed and the name of the way; None for values that cannot be kept so."""
        if not self.is_halved:
            return size / _FILE_RATE, size, "disk"
        if any(handle.dtype != _C.float32 for handle in handles):
            return None
        return size / _CAST_RATE, size // 2, "bf16"

    def keep(self, tensor: Tensor) -> Any:
        """Moves the memory of a tensor there."""
        return _Halved(tensor) if self.is_halved else _Written(tensor, self.folder)
