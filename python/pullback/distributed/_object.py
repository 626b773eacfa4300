"""Collectives of objects of Python in a group of one: each gets a copy by way of a pickle."""

from __future__ import annotations

import io
from typing import Any

from . import _group
from ._collective import _check_root, _refuse_peer
from ._store import copied


def _received(thing: Any, weights_only: bool) -> Any:
    """What another process would get; with ``weights_only`` as ``torch.load`` has it."""
    if not weights_only:
        return copied(thing)
    from .. import load, save

    file = io.BytesIO()
    save(thing, file)
    file.seek(0)
    return load(file, weights_only=True)


def all_gather_object(
    object_list: list[Any], obj: Any, group: Any = None, weights_only: bool = False
) -> None:
    """Writes the objects of all processes into a list.

    Args:
        object_list: a list with an element for each process.
        obj: this process's.
        group: among which processes.
        weights_only: whether objects are read as ``torch.load(weights_only=True)`` would.

    Raises:
        IndexError: for an empty list.
        UnpicklingError: for what ``weights_only`` does not read.
    """
    if not _group.is_member(group):
        return
    _group.resolved(group)
    object_list[0] = _received(obj, weights_only)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Writes the objects of all processes into a list that one process has.

    Args:
        obj: this process's.
        object_gather_list: a list with an element for each process.
        dst: the rank of the process that has the list; 0 unless given.
        group: among which processes.
        group_dst: its rank in the group, in place of ``dst``.
        weights_only: whether objects are read as ``torch.load(weights_only=True)`` would.

    Raises:
        ValueError: without a list.
        UnpicklingError: for what ``weights_only`` does not read.
    """
    if not _group.is_member(group):
        return
    _group.resolved(group)
    _check_root(0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = _received(obj, weights_only)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Gives all processes the objects in the list of one: they stay as they are.

    Args:
        object_list: what is sent, or where it comes.
        src: the rank of the process that sends; 0 unless given.
        group: to which processes.
        device: where the bytes would be on their way.
        group_src: its rank in the group, in place of ``src``.
        weights_only: how receivers would read them; the process that sends keeps its own.
    """
    if not _group.is_member(group):
        return
    _group.resolved(group)
    _check_root(0 if src is None and group_src is None else src, group_src, "broadcast")
    for thing in object_list:
        # (The process that sends keeps its own; what cannot be sent is an error all the same.)
        copied(thing)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Sends each process one object of a list that one process has.

    Args:
        scatter_object_output_list: a list whose first element becomes this process's.
        scatter_object_input_list: an object for each process.
        src: the rank of the process that has the list; 0 unless given.
        group: among which processes.
        group_src: its rank in the group, in place of ``src``.
        weights_only: whether objects are read as ``torch.load(weights_only=True)`` would.

    Raises:
        ValueError: for empty lists, or another number of objects.
        UnpicklingError: for what ``weights_only`` does not read.
    """
    if not _group.is_member(group):
        return
    _group.resolved(group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    _check_root(0 if src is None and group_src is None else src, group_src, "scatter")
    if scatter_object_input_list is None or len(scatter_object_input_list) != 1:
        raise ValueError("source rank must provide non-None scatter_object_input_list of size 1")
    scatter_object_output_list[0] = _received(scatter_object_input_list[0], weights_only)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Would send another process objects.

    Args:
        object_list: what.
        dst: the rank of the process.
        group: its group.
        device: where the bytes would be on their way.
        group_dst: its rank in the group, in place of ``dst``.
        use_batch: whether all are one message.
        weights_only: whether objects would be read as ``torch.load(weights_only=True)`` would.

    Raises:
        ValueError: always: there is no other process.
    """
    _group.resolved(group)
    _refuse_peer(dst, group_dst, "destination")


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Would receive objects from another process.

    Args:
        object_list: where they come.
        src: the rank of the process.
        group: its group.
        device: where the bytes would be on their way.
        group_src: its rank in the group, in place of ``src``.
        use_batch: whether all are one message.
        weights_only: whether objects would be read as ``torch.load(weights_only=True)`` would.

    Raises:
        ValueError: always: there is no other process.
    """
    _group.resolved(group)
    _refuse_peer(src, group_src, "source")
    return -1
