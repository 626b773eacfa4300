"""Memory that processes share: files (``torch.from_file``), and that of ``share_memory_``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from mmap import mmap

    from ._C import UntypedStorage
    from ._tensor import Tensor

__all__ = ["from_file", "map_file", "map_shared"]


def _check(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(
            f"from_file(): argument '{name}' must be {kind.__name__}, not {type(value).__name__}"
        )


def _descriptor(filename: str, shared: bool) -> int:
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        return os.open(filename, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None


def map_file(filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
    """A storage over the first bytes of a file.

    Args:
        filename: the file's name.
        shared: whether writes go into the file, which is then made, or grows, as needed. Else they
            are seen by this storage alone.
        nbytes: how many bytes.

    Raises:
        RuntimeError: if the file cannot be opened, is too short, or cannot be mapped.
    """
    _check("filename", filename, str)
    if nbytes < 0:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{filename}>")
    descriptor = _descriptor(filename, shared)
    try:
        size = os.fstat(descriptor).st_size
        if size < nbytes and not shared:
            raise RuntimeError(
                f"file <{filename}> size <{size}> is smaller than the required mapping size "
                f"<{nbytes}>"
            )
        if nbytes == 0:
            return _C.UntypedStorage(0)
        import mmap

        try:
            if size < nbytes:
                os.ftruncate(descriptor, nbytes)
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            memory = mmap.mmap(descriptor, nbytes, access=access)
        except (OSError, OverflowError, ValueError) as error:
            raise RuntimeError(
                f"unable to mmap {nbytes} bytes from file <{filename}>: {error}"
            ) from None
    finally:
        os.close(descriptor)
    return _C.UntypedStorage._over_map(memory, filename if shared else None)


def map_shared(nbytes: int) -> mmap:
    """Memory that this process can share with others.

    Raises:
        RuntimeError: if there is not enough of it.
    """
    from ._shared_memory import new_block

    return new_block(nbytes)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A vector whose memory is the first bytes of a file.

    Args:
        filename: the file's name.
        shared: whether writes to the tensor go into the file, which is then made, or grows, as
            needed. Else they are seen by this tensor alone.
        size: how many elements.
        dtype: of the elements; the default dtype by default.
        layout: must be ``strided``.
        device: ``cpu`` or None.
        pin_memory: must be false.
        requires_grad: whether the tensor is a leaf that requires grad.

    Raises:
        RuntimeError: if the file cannot be opened, is too short, or cannot be mapped.
    """
    _check("filename", filename, str)
    if shared is not None:
        _check("shared", shared, bool)
    size = 0 if size is None else size
    _check("size", size, int)
    # (An empty tensor, which checks the options.)
    options = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory}
    dtype = _C._VariableFunctions.empty(0, **options).dtype
    storage = map_file(filename, bool(shared), size * dtype.itemsize)
    tensor: Tensor = _C._tensor_over(storage, dtype, 0, [size], [1])
    return tensor.requires_grad_() if requires_grad else tensor
