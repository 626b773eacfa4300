"""What ``torch.save`` and ``torch.load`` do unless they are told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from mmap import MAP_PRIVATE
except ImportError:  # (Windows has other maps.)
    MAP_PRIVATE = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from ...serialization import LoadEndianness

__all__: list[str] = []


class load:
    """Of ``torch.load``."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = MAP_PRIVATE
    # Where records are is always read from the archive, which says it.
    calculate_storage_offsets: bool = False


class save:
    """Of ``torch.save``."""

    compute_crc32: bool = True
    # Without effect: memory of devices is copied as it is.
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64
