"""Collectives in a group of one: tensors come back unchanged, and the arguments are checked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from . import _group
from ._work import RedOpType, ReduceOp, Work

_REAL_ONLY = (RedOpType.MAX, RedOpType.MIN, RedOpType.PRODUCT)
_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_list(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )


def _check_op(op: Any, tensors: Sequence[Tensor], what: str) -> None:
    found = op.op if isinstance(op, ReduceOp) else op
    if not isinstance(found, RedOpType) or found == RedOpType.PREMUL_SUM:
        raise TypeError(f"{what}(): op must be a member of ReduceOp other than PREMUL_SUM: {op!r}")
    for tensor in tensors:
        if tensor.is_complex() and found in (*_REAL_ONLY, *_BITWISE):
            raise ValueError(f"{what} does not support RedOpType.{found.name} on complex tensors")
        if found in _BITWISE and tensor.is_floating_point():
            raise RuntimeError(f"Cannot use ReduceOp.{found.name} with non-integral dtype")


def _check_root(root: int | None, group_root: int | None, what: str) -> None:
    """Checks the rank that a call is from or to, as a rank in the world or in the group."""
    if root is not None and group_root is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if root is None and group_root is None:
        raise ValueError("Must specify global_rank or group_rank")
    rank = root if group_root is None else group_root
    if rank != 0:
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {rank}")


def _check_alike(output: Tensor, input: Tensor, what: str) -> None:
    if output.dtype != input.dtype:
        raise ValueError(
            "Invalid usage of tensors with different dtypes: Found "
            f"{output.dtype} and {input.dtype}"
        )
    if output.shape != input.shape:
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid tensor size at index 0 (expected "
            f"{tuple(input.shape)}, got {tuple(output.shape)})"
        )


def _check_one(values: Any, name: str, what: str) -> Tensor:
    """The only tensor of a list that has one for each process."""
    _check_list(values, name)
    if len(values) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid tensor list `{name}` at index 0 (expected length "
            f"1, got {len(values)})"
        )
    tensor: Tensor = values[0]
    return tensor


def _write(output: Tensor, input: Tensor, what: str) -> None:
    _check_alike(output, input, what)
    with no_grad():
        output.detach().copy_(input)


def _done(async_op: bool, *tensors: Tensor) -> Work | None:
    return Work(list(tensors)) if async_op else None


def all_reduce(
    tensor: Tensor, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The sum (or another reduction) of all processes' tensors, in their place: it stays as it is.

    Args:
        tensor: what is reduced, and where the result comes.
        op: how.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        TypeError: for what is no tensor or no reduction.
        RuntimeError: for bits of floating-point numbers.
        ValueError: for an order of complex numbers, and before there is a group.
    """
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_op(op, [tensor], "all_reduce")
    return _done(async_op, tensor)


def all_reduce_coalesced(
    tensors: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As :func:`all_reduce` for several tensors."""
    _check_list(tensors, "tensors")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_op(op, tensors, "all_reduce_coalesced")
    return _done(async_op, *tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = RedOpType.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As :func:`all_reduce`, where only one process gets the result.

    Args:
        tensor: what is reduced, and where the result comes.
        dst: the rank of that process.
        op: how.
        group: among which processes.
        async_op: whether to return a handle.
        group_dst: its rank in the group, in place of ``dst``.
    """
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_root(dst, group_dst, "reduce")
    _check_op(op, [tensor], "reduce")
    return _done(async_op, tensor)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives all processes the tensor of one: it stays as it is.

    Args:
        tensor: what is sent, or where it comes.
        src: the rank of the process that sends.
        group: to which processes.
        async_op: whether to return a handle.
        group_src: its rank in the group, in place of ``src``.

    Raises:
        RuntimeError: for a rank that is not there.
        ValueError: without a rank or with two, and before there is a group.
    """
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_root(src, group_src, "broadcast")
    return _done(async_op, tensor)


def all_gather(
    tensor_list: Any, tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all processes into a list of tensors.

    Args:
        tensor_list: a tensor for each process, with the shape and dtype of ``tensor``.
        tensor: this process's.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        TypeError: for what is no list of tensors.
        ValueError: for other dtypes.
        RuntimeError: for another number or other shapes.
    """
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    output = _check_one(tensor_list, "tensor_list", "allgather")
    _write(output, tensor, "allgather")
    return _done(async_op, output)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """As :func:`all_gather` for several tensors: for each a list with a tensor for each process."""
    _check_list(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list) or len(output_tensor_lists) != len(
        input_tensor_list
    ):
        raise RuntimeError(
            "Invalid function argument: output_tensor_lists should be a list of lists"
        )
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True):
        all_gather(outputs, tensor, group)
    return _done(async_op, *(outputs[0] for outputs in output_tensor_lists))


def _into(output: Tensor, input: Tensor, group: Any, async_op: bool, what: str) -> Work | None:
    _check_tensor(output, "output_tensor")
    _check_tensor(input, "input_tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _write(output, input, what)
    return _done(async_op, output)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all processes, one below the other, into one tensor.

    Args:
        output_tensor: where they come.
        input_tensor: this process's.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        ValueError: for another dtype.
        RuntimeError: for another shape.
    """
    return _into(output_tensor, input_tensor, group, async_op, "allgather")


all_gather_single = all_gather_into_tensor


def reduce_scatter(
    output: Tensor,
    input_list: Any,
    op: Any = RedOpType.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists of tensors, one for each process, and writes this process's result.

    Args:
        output: where it comes.
        input_list: a tensor for each process.
        op: how.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        RuntimeError: for another number or another shape.
    """
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    if len(input_list) != 1:
        raise RuntimeError("invalid input tensor list size, must be world size")
    _check_op(op, [output], "reduce_scatter")
    _write(output, input_list[0], "reduce_scatter")
    return _done(async_op, output)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = RedOpType.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As :func:`reduce_scatter`, with the tensors for the processes one below the other in one."""
    _check_tensor(output, "output")
    _check_op(op, [output], "reduce_scatter_tensor")
    return _into(output, input, group, async_op, "reduce_scatter")


reduce_scatter_single = reduce_scatter_tensor


def scatter(
    tensor: Tensor,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Sends each process one tensor of a list that one process has.

    Args:
        tensor: where this process's comes.
        scatter_list: a tensor for each process.
        src: the rank of the process that has the list; 0 unless given.
        group: among which processes.
        async_op: whether to return a handle.
        group_src: its rank in the group, in place of ``src``.

    Raises:
        ValueError: without a list.
        RuntimeError: for another number or another shape.
    """
    _check_tensor(tensor, "tensor")
    if scatter_list:
        _check_list(scatter_list, "scatter_list")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_root(0 if src is None and group_src is None else src, group_src, "scatter")
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if len(scatter_list) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_list)}. Input list "
            "size should be 1, same as size of the process group."
        )
    _write(tensor, scatter_list[0], "scatter")
    return _done(async_op, tensor)


def gather(
    tensor: Tensor,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Writes the tensors of all processes into a list of tensors that one process has.

    Args:
        tensor: this process's.
        gather_list: a tensor for each process.
        dst: the rank of the process that has the list; 0 unless given.
        group: among which processes.
        async_op: whether to return a handle.
        group_dst: its rank in the group, in place of ``dst``.

    Raises:
        ValueError: without a list.
        RuntimeError: for another number or another shape.
    """
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_root(0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    output = _check_one(gather_list, "gather_list", "gather")
    _write(output, tensor, "gather")
    return _done(async_op, output)


def gather_into_tensor(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As :func:`gather`, into one tensor, the processes' one below the other.

    Args:
        tensor: this process's.
        gather_tensor: where they come, contiguous; its number of elements matters, not its shape.
        dst: the rank of the process that has the tensor; 0 unless given.
        group: among which processes.
        async_op: whether to return a handle.
        group_dst: its rank in the group, in place of ``dst``.

    Raises:
        ValueError: without a tensor to write to, for one that is not contiguous or has another
            dtype.
        RuntimeError: for another number of elements.
    """
    _check_tensor(tensor, "tensor")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    _check_root(0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if gather_tensor is None:
        raise ValueError("gather_tensor must be specified on the destination rank")
    _check_tensor(gather_tensor, "gather_tensor")
    if not gather_tensor.is_contiguous():
        raise ValueError("gather_tensor must be contiguous")
    is_fit = gather_tensor.numel() == tensor.numel()
    _write(gather_tensor.view(tensor.shape) if is_fit else gather_tensor, tensor, "gather")
    return _done(async_op, gather_tensor)


gather_single = gather_into_tensor


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Sends each process the tensor that a list has for it, and writes what the others send.

    Args:
        output_tensor_list: where the tensors of the processes come.
        input_tensor_list: a tensor for each process.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        RuntimeError: for another number or another shape.
    """
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    output = _check_one(output_tensor_list, "output_tensor_list", "alltoall")
    _write(output, _check_one(input_tensor_list, "input_tensor_list", "alltoall"), "alltoall")
    return _done(async_op, output)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As :func:`all_to_all` with one tensor for all processes, split along the first dimension.

    Args:
        output: where the parts of the processes come.
        input: the parts for the processes.
        output_split_sizes: the sizes of the parts; equal ones for None.
        input_split_sizes: the sizes of the parts; equal ones for None.
        group: among which processes.
        async_op: whether to return a handle.

    Raises:
        RuntimeError: for sizes that do not fit.
    """
    for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
        _check_tensor(tensor, "tensor")
        if sizes and (len(sizes) != 1 or sum(sizes) != tensor.shape[0]):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return _into(output, input, group, async_op, "alltoall")


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all processes are here: they are.

    Args:
        group: which processes.
        async_op: whether to return a handle.
        device_ids: on which devices NCCL would wait.
        timeout: how long to wait at most; nothing waits.

    Raises:
        ValueError: before there is a group.
    """
    if not _group.is_member(group):
        return None
    _group.resolved(group)
    return _done(async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """As :func:`barrier`, with an error that names who is missing: nobody is.

    Args:
        group: which processes.
        timeout: how long to wait at most.
        wait_all_ranks: whether all who are missing are named.
    """
    barrier(group)


def _refuse_peer(rank: int | None, group_rank: int | None, what: str) -> None:
    peer = rank if group_rank is None else group_rank
    if peer in (0, None):
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current "
            "process."
        )
    raise ValueError(f"Global rank {peer} is not part of group: it is a group of one")


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Would send another process a tensor.

    Args:
        tensor: what.
        dst: the rank of the process.
        group: its group.
        tag: a number by which messages are told apart.
        group_dst: its rank in the group, in place of ``dst``.

    Raises:
        ValueError: always: there is no other process.
    """
    _check_tensor(tensor, "tensor")
    _group.resolved(group)
    _refuse_peer(dst, group_dst, "destination")
    return None


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Would receive a tensor from another process.

    Args:
        tensor: where it comes.
        src: the rank of the process.
        group: its group.
        tag: a number by which messages are told apart.
        group_src: its rank in the group, in place of ``src``.

    Raises:
        ValueError: always: there is no other process.
    """
    _check_tensor(tensor, "tensor")
    _group.resolved(group)
    _refuse_peer(src, group_src, "source")
    return None


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """As :func:`isend`, and waits."""
    isend(tensor, dst, group, tag, group_dst)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """As :func:`irecv`, and waits; the rank of the process."""
    irecv(tensor, src, group, tag, group_src)
    return -1


class P2POp:
    """A message for :func:`batch_isend_irecv`.

    Args:
        op: :func:`isend` or :func:`irecv`.
        tensor: what is sent, or where it comes.
        peer: the rank of the other process.
        group: its group.
        tag: a number by which messages are told apart.
        group_peer: its rank in the group, in place of ``peer``.

    Raises:
        ValueError: for another function.
    """

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _group.resolved(group), tag
        self.peer = peer if group_peer is None else group_peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} peer={self.peer}, {self.tensor.shape})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work | None]:
    """Sends and receives several messages at once.

    Raises:
        ValueError: for what is no message, and for every message: there is no other process.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type P2POp.")
    return [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
