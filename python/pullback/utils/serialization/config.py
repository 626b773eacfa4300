"""What ``torch.save`` and ``torch.load`` do unless they are told otherwise."""

from __future__ import annotations

import mmap as _mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...serialization import LoadEndianness

__all__: list[str] = []


class load:
    """The defaults of ``torch.load``."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    # (Windows has other maps.)
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    # The places of records are always read from the archive, which states them.
    calculate_storage_offsets: bool = False


class save:
    """The defaults of ``torch.save``."""

    compute_crc32: bool = True
    # Without effect: memory of devices is copied as it is.
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64
