"""Memory that processes can hand to each other: what ``share_memory_`` moves storages to.

Each block is a file without a name, or one in a folder of the system's memory (the sharing
strategies ``file_descriptor`` and ``file_system`` of :mod:`torch.multiprocessing`). Which block a
storage shows is known here by its address, for as long as the block lives. Invariant: a descriptor
and a file live as long as their block, links that were made for another process until that takes
them or this one ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import sys
import tempfile
import weakref
from mmap import mmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._C import UntypedStorage

FILE_DESCRIPTOR = "file_descriptor"
FILE_SYSTEM = "file_system"
strategy = FILE_DESCRIPTOR if hasattr(os, "memfd_create") else FILE_SYSTEM

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
_BLOCKS: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()
# Files that this process made for others which have not taken them yet.
_LINKS: set[str] = set()


class Block(mmap):
    """A map of shared memory, and what another process needs to map it too."""

    descriptor: int | None = None
    path: str | None = None
    _owner = 0

    def address(self) -> int:
        """The address in this process."""
        import ctypes

        return ctypes.addressof(ctypes.c_char.from_buffer(self))

    def link(self) -> str:
        """The name of a file over the same memory, which its receiver removes."""
        assert self.path is not None
        link = f"{self.path}.{os.getpid()}.{next(_NUMBERS)}"
        os.link(self.path, link)
        if not _LINKS:
            atexit.register(_remove_links, os.getpid())
        _LINKS.add(link)
        return link

    def __del__(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
        if self.path is not None and self._owner == os.getpid():
            _remove(self.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Its receiver has removed it.
        return


def _remove_links(process: int) -> None:
    if os.getpid() == process:
        for link in _LINKS:
            _remove(link)


def _mapped(descriptor: int, size: int) -> Block:
    # (Before CPython 3.13 a map keeps a descriptor of its own in any case.)
    options: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    block = Block(descriptor, max(size, 1), **options)
    _BLOCKS[block.address()] = block
    return block


def new_block(nbytes: int) -> Block:
    """Memory of so many zero bytes.

    Raises:
        RuntimeError: if there is not enough of it.
    """
    path = None
    try:
        if strategy == FILE_DESCRIPTOR:
            descriptor = os.memfd_create("pullback", os.MFD_CLOEXEC)
        else:
            path = f"{_FOLDER}/torch_{os.getpid()}_{secrets.token_hex(4)}_{next(_NUMBERS)}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open shared memory object <{path}>: {error}") from None
    try:
        # Otherwise a missing page would end the process at its first access.
        allocate = getattr(os, "posix_fallocate", lambda file, _, size: os.ftruncate(file, size))
        allocate(descriptor, 0, max(nbytes, 1))
        block = _mapped(descriptor, nbytes)
    except (OSError, OverflowError, ValueError) as error:
        os.close(descriptor)
        if path is not None:
            _remove(path)
        raise RuntimeError(f"unable to mmap {nbytes} bytes of shared memory: {error}") from None
    if path is None:
        block.descriptor = descriptor
    else:
        os.close(descriptor)
        block.path, block._owner = path, os.getpid()
    return block


def open_descriptor(descriptor: int, nbytes: int) -> Block:
    """The block that another process has sent a descriptor of, which belongs to it from now on."""
    try:
        block = _mapped(descriptor, nbytes)
    except BaseException:
        os.close(descriptor)
        raise
    block.descriptor = descriptor
    return block


def open_link(link: str, nbytes: int) -> Block:
    """The block that another process has sent a link of, which is gone afterwards."""
    descriptor = os.open(link, os.O_RDWR | os.O_CLOEXEC)
    try:
        block = _mapped(descriptor, nbytes)
    finally:
        os.close(descriptor)
    # The link is its file in this process.
    block.path, block._owner = link, os.getpid()
    return block


def block_of(storage: UntypedStorage) -> Block | None:
    """The block that a storage shows, if it shows one."""
    return _BLOCKS.get(storage.data_ptr())
