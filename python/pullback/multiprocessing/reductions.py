"""How tensors and storages are pickled for another process: by their shared memory.

A storage is moved to shared memory when it is first sent. It travels as a descriptor, or as the
name of a file, and its size; a process that is sent the same memory twice shows it by the same
storage. Tensors are pickled as always, over that storage; those that are no leaves of their graph
are refused, since no graph crosses processes.
"""

from __future__ import annotations

import os
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import TYPE_CHECKING, Any

from .. import _C, _shared_memory
from ..nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from .._C import UntypedStorage
    from .._tensor import Tensor

__all__ = ["init_reductions", "rebuild_storage_empty", "reduce_storage", "reduce_tensor"]

# Storages over memory of other processes, by the number and device of its file.
_RECEIVED: weakref.WeakValueDictionary[tuple[int, int], UntypedStorage] = (
    weakref.WeakValueDictionary()
)


class StorageWeakRef:
    """A reference to a storage that does not keep it; equal for one storage.

    Args:
        storage: the storage.
    """

    __slots__ = ("_reference", "cdata")

    def __init__(self, storage: Any) -> None:
        untyped = getattr(storage, "_untyped_storage", storage)
        # (One storage has one object, as long as something shows it; that one has one reference.)
        self._reference = weakref.ref(untyped)
        self.cdata = untyped._cdata

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference() is None

    def __hash__(self) -> int:
        return id(self._reference)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self._reference is other._reference


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """What a tensor is pickled as for another process.

    Raises:
        RuntimeError: for a tensor that requires grad and is no leaf.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries: detach() the tensor first, if only its "
            "data is to be sent"
        )
    return tensor.__reduce_ex__(2)


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """What a storage is pickled as for another process: itself in shared memory."""
    if storage.device.type != "cpu":
        return storage.__reduce__()
    if storage.nbytes() == 0:
        return rebuild_storage_empty, ()
    block = _shared_memory.block_of(storage)
    if block is None:
        # (A file that is mapped cannot be moved.)
        storage = storage.clone() if storage.is_shared() else storage
        block = _shared_memory.block_of(storage.share_memory_())
        assert block is not None
    if block.descriptor is None:
        return _rebuild_from_link, (block.link(), storage.nbytes())
    return _rebuild_from_descriptor, (DupFd(block.descriptor), storage.nbytes())


def rebuild_storage_empty() -> UntypedStorage:
    """A storage without bytes."""
    return _C.UntypedStorage(0)


def _rebuild_from_descriptor(sent: Any, nbytes: int) -> UntypedStorage:
    descriptor: int = sent.detach()
    return _received(descriptor, nbytes, None)


def _rebuild_from_link(link: str, nbytes: int) -> UntypedStorage:
    return _received(os.open(link, os.O_RDWR | os.O_CLOEXEC), nbytes, link)


def _received(descriptor: int, nbytes: int, link: str | None) -> UntypedStorage:
    """The storage over memory that is open; there is one for each memory."""
    status = os.fstat(descriptor)
    key = (status.st_dev, status.st_ino)
    storage = _RECEIVED.get(key)
    if storage is not None and storage.nbytes() == nbytes:
        os.close(descriptor)
        if link is not None:
            os.unlink(link)
        return storage
    if link is None:
        block = _shared_memory.open_descriptor(descriptor, nbytes)
    else:
        os.close(descriptor)
        block = _shared_memory.open_link(link, nbytes)
    storage = _C.UntypedStorage._over_map(block, None)
    _RECEIVED[key] = storage
    return storage


def init_reductions() -> None:
    """Lets queues, pipes and processes send tensors and storages so."""
    ForkingPickler.register(_C.UntypedStorage, reduce_storage)
    from .. import Tensor

    for kind in (Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
