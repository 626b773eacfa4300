"""Groups of processes: a process alone, of rank 0 in a world of one."""

from __future__ import annotations

import itertools
import os
import urllib.parse
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from .. import _placeholder
from ._store import FileStore, PrefixStore, Store, TCPStore

default_pg_timeout = timedelta(minutes=30)
_numbers = itertools.count()


class Backend(str):
    """The name of what carries messages, in small letters.

    Raises:
        ValueError: for what is no string.
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list: ClassVar[list[str]] = [
        "undefined",
        "gloo",
        "nccl",
        "xccl",
        "ucc",
        "mpi",
        "fake",
    ]

    def __new__(cls, name: str) -> Backend:
        """Makes the letters small."""
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of one process.

    Args:
        name: what it is called.
        store: where its processes keep what they tell each other.
        backend: what would carry messages.
        desc: what it is for.
    """

    def __init__(self, name: str, store: Store, backend: Backend, desc: str = "undefined") -> None:
        self.group_name = name
        self.group_desc = desc
        self.bound_device_id = None
        self._store = store
        self._backend = backend

    def rank(self) -> int:
        """The number of this process: 0."""
        return 0

    def size(self) -> int:
        """The number of processes: 1."""
        return 1

    def name(self) -> str:
        """The name of the backend."""
        return str(self._backend)

    def get_group_store(self) -> Store:
        """The store of its processes."""
        return self._store


_groups: list[ProcessGroup] = []


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before there is one."""
        return _groups[0] if _groups else None


class group(metaclass=_World):
    """Has the group of all processes, :attr:`WORLD`."""


class GroupMember(metaclass=_World):
    """Holds the group of all processes, and the value for no group."""

    NON_GROUP_MEMBER = -100


def default_group() -> ProcessGroup:
    """The group of all processes.

    Raises:
        ValueError: before there is one.
    """
    if not _groups:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _groups[0]


def resolved(given: Any) -> ProcessGroup:
    """The group that is meant: that of all processes for None.

    Raises:
        ValueError: for a group that was destroyed, and before there is one.
        TypeError: for what is no group.
    """
    found = default_group() if given is None else given
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"expected a ProcessGroup, but got {type(found).__name__}")
    if found not in _groups:
        raise ValueError("Invalid process group specified: it has been destroyed")
    return found


def is_member(given: Any) -> bool:
    """Whether this process is in a group; a warning if it is not."""
    if given != GroupMember.NON_GROUP_MEMBER:
        return True
    warnings.warn("the group of this call does not contain this process", stacklevel=4)
    return False


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return value


Found = tuple[Store, int, int]


def _from_environment(url: Any, rank: int, world_size: int) -> Found:
    rank = int(_variable("RANK")) if rank < 0 else rank
    world_size = int(_variable("WORLD_SIZE")) if world_size < 0 else world_size
    address, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    _check_world(rank, world_size)
    return TCPStore(address, port, world_size, is_master=True), rank, world_size


def _from_address(url: Any, rank: int, world_size: int) -> Found:
    if url.port is None:
        raise ValueError(f"Error initializing torch.distributed using tcp://: no port in {url}")
    _check_given(rank, world_size, "tcp")
    _check_world(rank, world_size)
    return TCPStore(url.hostname, url.port, world_size, is_master=True), rank, world_size


def _from_file(url: Any, rank: int, world_size: int) -> Found:
    if not url.path:
        raise ValueError("Error initializing torch.distributed using file://: path missing")
    _check_given(rank, world_size, "file")
    _check_world(rank, world_size)
    return FileStore(url.path, world_size), rank, world_size


def _check_given(rank: int, world_size: int, scheme: str) -> None:
    for name, value in (("rank", rank), ("world size", world_size)):
        if value < 0:
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} "
                "parameter missing"
            )


def _check_world(rank: int, world_size: int) -> None:
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be from 0 to world_size - 1: {rank} in {world_size}")
    if world_size > 1:
        raise RuntimeError(
            f"init_process_group(): a world of {world_size} processes is not available: "
            f"{_placeholder.why('pullback.distributed')}"
        )


_handlers: dict[str, Callable[[Any, int, int], Found]] = {
    "env": _from_environment,
    "file": _from_file,
    "tcp": _from_address,
}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Lets ``init_method`` begin with another word.

    Args:
        scheme: the word.
        handler: a generator function of the URL, that gives a store, a rank and a world's size.

    Raises:
        RuntimeError: if there is one for the word.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")

    def find(url: Any, rank: int, world_size: int) -> Found:
        store, its_rank, its_size = next(iter(handler(url.geturl())))
        _check_world(its_rank, its_size)
        return store, its_rank, its_size

    _handlers[scheme] = find


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
    """The store, rank and size of the world that a URL means, one after the other.

    Raises:
        RuntimeError: for a word that nobody knows, and a world of several processes.
        ValueError: for what is missing.
    """
    parsed = urllib.parse.urlparse(url)
    query = dict(urllib.parse.parse_qsl(parsed.query))
    rank = int(query.get("rank", -1)) if rank < 0 else rank
    world_size = int(query.get("world_size", -1)) if world_size < 0 else world_size
    if parsed.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    yield _handlers[parsed.scheme](parsed, rank, world_size)


def backend_for_cpu(name: str | None) -> Backend:
    """What carries messages between tensors in main memory.

    Args:
        name: a backend, backends by device as ``"cpu:gloo,cuda:nccl"``, or None.

    Raises:
        AssertionError: for a backend that nobody knows.
        RuntimeError: for one that this build has not.
    """
    by_device = dict(part.split(":", 1) for part in (name or "").split(",") if ":" in part)
    found = Backend(by_device.get("cpu", "gloo") if by_device or name is None else name)
    if found not in Backend.backend_list:
        raise AssertionError(f"Unknown backend type {found}")
    if found == "undefined":
        return Backend("gloo")
    if found not in ("gloo", "fake"):
        raise RuntimeError(
            f"Distributed package doesn't have {found.upper()} built in: only 'gloo', in a group "
            "of one"
        )
    return found


def start(
    backend: str | None,
    init_method: str | None,
    timeout: timedelta | None,
    world_size: int,
    rank: int,
    store: Store | None,
) -> None:
    """Makes the group of all processes: see ``init_process_group``."""
    if _groups:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    chosen = backend_for_cpu(backend)
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size))
    else:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
        _check_world(rank, world_size)
    store.set_timeout(default_pg_timeout if timeout is None else timeout)
    _add(store, chosen, "default_pg")


def _add(store: Store, backend: Backend, desc: str) -> ProcessGroup:
    number = next(_numbers)
    made = ProcessGroup(str(number), PrefixStore(f"group{number}", store), backend, desc)
    _groups.append(made)
    return made


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes.

    Args:
        ranks: which; all for None.
        timeout: how long to wait; nothing waits.
        backend: what carries messages; the same as before for None.
        pg_options: options of the backend, which has none.
        use_local_synchronization: whether only members wait for each other.
        group_desc: what it is for.
        device_id: the device to which it is bound; none is.
        sort_ranks: whether the processes are numbered in the order of ``ranks``, which is one.

    Returns:
        The group; ``GroupMember.NON_GROUP_MEMBER`` for an empty list.

    Raises:
        ValueError: for a rank that is not there or stands twice, and before there is a group.
    """
    world = default_group()
    chosen = [0] if ranks is None else list(ranks)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    for rank in chosen:
        if rank != 0:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    if not chosen:
        return GroupMember.NON_GROUP_MEMBER
    carrier = world._backend if backend is None else backend_for_cpu(backend)
    return _add(world._store, carrier, group_desc or "undefined")


def destroy_process_group(group: Any = None) -> None:
    """Ends a group; that of all processes for None, and with it all others.

    Raises:
        AssertionError: before there is one.
        ValueError: for a group that was destroyed.
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None and not _groups:
        raise AssertionError("Process group cannot be None")
    found = resolved(group)
    if found is _groups[0]:
        _groups.clear()
    else:
        _groups.remove(found)


def is_initialized() -> bool:
    """Whether this process is one of a group."""
    return bool(_groups)


def count() -> int:
    """The number of groups."""
    return len(_groups)
