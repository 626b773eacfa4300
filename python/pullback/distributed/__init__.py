"""Training on processes together: here a process is a group of one, which does all that one can.

``init_process_group("gloo", ...)`` makes the group, collectives check their arguments and do what
they do in a group of one, exactly; a larger world is one clear error, as is what would split a
module over processes (`_placeholder/table.py`).
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .. import _C, _absent, _lazy
from . import _group
from ._collective import (
    P2POp,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    gather_into_tensor,
    gather_single,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    send,
)
from ._group import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    group,
    is_initialized,
    new_group,
    register_rendezvous_handler,
    rendezvous,
)
from ._object import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._store import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)
from ._work import ReduceOp, Work, reduce_op
from .device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "Backend",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "GroupName",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "breakpoint",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "gather_single",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "set_timeout",
    "supports_complex",
]

# (A name of a group in place of the group, for functions that take both.)
GroupName = str


def is_available() -> bool:
    """Whether there are groups of processes: groups of one."""
    return True


def is_gloo_available() -> bool:
    """Whether ``"gloo"`` is a backend: a group of one needs no messages to be it."""
    return True


def is_mpi_available() -> bool:
    """Whether processes can talk through MPI: no."""
    return False


def is_nccl_available() -> bool:
    """Whether processes can talk through NCCL: no."""
    return False


def is_ucc_available() -> bool:
    """Whether processes can talk through UCC: no."""
    return False


def is_xccl_available() -> bool:
    """Whether processes can talk through XCCL: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a group can have this backend."""
    return backend.lower() in ("gloo", "fake")


def is_torchelastic_launched() -> bool:
    """Whether ``torchrun`` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
    enable_reconfigure: bool = False,
) -> None:
    """Makes the group of all processes, of which this is the only one.

    Args:
        backend: ``"gloo"``, or ``"cpu:gloo,cuda:nccl"``; nothing is sent.
        init_method: a URL that says where the processes meet: ``env://`` (the variables ``RANK``,
            ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``), ``tcp://HOST:PORT``, ``file://PATH``.
        timeout: how long stores wait.
        world_size: how many processes there are: one.
        rank: the number of this one: 0.
        store: where they meet, in place of a URL.
        group_name: has no meaning any more.
        pg_options: options of the backend, which has none.
        device_id: the device to which the group is bound; none is.
        enable_reconfigure: must be False: processes of a group of one do not change.

    Raises:
        RuntimeError: for a world of several processes, and a backend that this build has not.
        ValueError: for what is missing, and if there is a group.
        AssertionError: for a URL beside a store, and a backend that nobody knows.
        NotImplementedError: for ``enable_reconfigure``.
    """
    if enable_reconfigure:
        raise NotImplementedError(
            "init_process_group(enable_reconfigure=True): the processes of a group do not change"
        )
    if _ranks is not None and list(_ranks) != [0]:
        raise ValueError(f"init_process_group(): the ranks must be [0], but got {_ranks}")
    _group.start(backend, init_method, timeout, world_size, rank, store)


def get_rank(group: Any = None) -> int:
    """The number of this process in a group: 0; -1 if it is not in it.

    Raises:
        ValueError: before there is a group.
    """
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _group.resolved(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes are in a group: 1; -1 if this one is not in it.

    Raises:
        ValueError: before there is a group.
    """
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _group.resolved(group).size()


def get_backend(group: Any = None) -> Backend:
    """What carries the messages of a group.

    Raises:
        ValueError: before there is a group.
    """
    return _group.resolved(group)._backend


def get_backend_config(group: Any = None) -> str:
    """What carries messages, by device.

    Raises:
        ValueError: before there is a group.
    """
    carrier = get_backend(group)
    return f"cpu:{carrier},cuda:{carrier}"


def get_default_backend_for_device(device: Any) -> str:
    """What carries messages between tensors of a device.

    Raises:
        ValueError: for a device other than the CPU.
    """
    kind = _C.device(device).type
    if kind != "cpu":
        raise ValueError(f"Default backend not registered for device : {kind}")
    return "gloo"


def get_pg_count() -> int:
    """The number of groups."""
    return _group.count()


def get_process_group_ranks(group: Any) -> list[int]:
    """The numbers of the processes of a group in the world.

    Raises:
        ValueError: before there is a group.
    """
    _group.resolved(group)
    return [0]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in a group of the process with a number in the world.

    Raises:
        ValueError: if it is not in it.
    """
    found = _group.resolved(group)
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {found}")
    return 0


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number in the world of the process with a number in a group.

    Raises:
        ValueError: if there is none.
    """
    found = _group.resolved(group)
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {found}")
    return 0


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, which ``LOCAL_RANK`` says.

    Args:
        fallback_rank: what holds without the variable.

    Raises:
        RuntimeError: without either.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work outside of a launcher."
    )


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of equal size, one after the other: this process's, and the list of all.

    Args:
        group_size: how many processes are in each: one.
        group: the group to be divided.
        timeout: how long to wait; nothing waits.
        backend: what carries messages; the same as before for None.
        pg_options: options of the backend, which has none.
        group_desc: what they are for.

    Raises:
        ValueError: for another size.
    """
    _group.resolved(group)
    if group_size not in (None, 1):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    made = new_group([0], timeout, backend, pg_options, group_desc=group_desc)
    return made, [made]


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of listed processes: this process's, and the list of all.

    Args:
        ranks_per_subgroup_list: a list for each group.
        timeout: how long to wait; nothing waits.
        backend: what carries messages; the same as before for None.
        pg_options: options of the backend, which has none.
        group_desc: what they are for.

    Raises:
        ValueError: for no list, and a process that is not there or in two groups.
    """
    lists = [list(ranks) for ranks in ranks_per_subgroup_list or []]
    if not lists:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    if lists != [[0]]:
        raise ValueError(f"every process must be in one group, here 0 alone: {lists}")
    made = new_group([0], timeout, backend, pg_options, group_desc=group_desc)
    return made, [made]


class DebugLevel(enum.IntEnum):
    """The level of detail of messages about communication."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """The setting of :func:`set_debug_level`."""
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Stores the level of detail; a process alone sends no messages."""
    global _debug_level
    _debug_level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Takes the level from the variable ``TORCH_DISTRIBUTED_DEBUG``.

    Raises:
        RuntimeError: if it has another value than the level's names.
    """
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, but got {word!r}"
        )
    set_debug_level(DebugLevel[word])


def set_timeout(timeout: timedelta, group: Any = None) -> None:
    """Sets how long a group's store waits.

    Raises:
        ValueError: before there is a group.
    """
    _group.resolved(group).get_group_store().set_timeout(timeout)


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers can be reduced so."""
    found = reduceOp.op if isinstance(reduceOp, ReduceOp) else reduceOp
    return found in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stops one process in the debugger, while the others wait.

    Args:
        rank: which.
        skip: how often to go on first.
        timeout_s: how long the others wait.
    """
    import pdb

    global _passed
    if get_rank() == rank and _passed >= skip:
        pdb.set_trace()
    _passed += 1
    barrier()


_passed = 0

_lazy.submodules(globals(), "distributed_c10d")
_absent.announce(globals())
