"""Regions that hooks on saved tensors run again: the way of ``use_reentrant=False``.

What a region's ops want to save becomes a placeholder; the first placeholder that backward asks
for runs the region again, which fills them all. Invariant: the values of one backward are in the
order in which they were saved.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _C
from ...autograd import Function
from ...autograd.grad_mode import enable_grad, no_grad
from ...autograd.graph import saved_tensors_hooks
from ...random import fork_rng, set_rng_state

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..._tensor import Tensor


class CheckpointError(RuntimeError):
    """A recomputation of a region did not repeat its forward."""


class Stop(Exception):
    """Ends a recomputation once all wanted values are computed."""


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of any class."""
    return isinstance(value, _C.TensorBase)


@contextlib.contextmanager
def random_state(state: Tensor | None) -> Iterator[None]:
    """Random numbers as from ``state`` on, for the duration; None changes nothing."""
    if state is None:
        yield
        return
    with fork_rng(devices=[]):
        set_rng_state(state)
        yield


class GraphExecGroup:
    """Backward calls that share what checkpointed regions compute again.

    Inside of ``with GraphExecGroup():`` a region runs again once, whatever the number of backward
    calls that reach it. These must go through parts of the graph that do not overlap. Regions with
    ``use_reentrant=True`` take no notice.
    """

    def __enter__(self) -> Self:
        if _current.group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {_current.group}"
            )
        _current.group = self
        return self

    def __exit__(self, *error: object) -> None:
        _current.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _current.group


class _Current(threading.local):
    group: GraphExecGroup | None = None


_current = _Current()
# The owner of values that were computed again: a group of backward calls, one of them, or an
# access outside of any.
Key = GraphExecGroup | int


def _key() -> Key:
    if _current.group is not None:
        return _current.group
    task = _C._current_graph_task_id()
    # Outside of backward nothing says when values are no longer wanted: each access is one of its
    # own.
    return uuid.uuid4().int if task == -1 else task


class _InternalHooks(saved_tensors_hooks):
    """Hooks of a region, which are none of the program's."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        pack_hook._is_internal = True  # type: ignore[attr-defined]
        super().__init__(pack_hook, unpack_hook)


def program_hooks() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """The innermost hooks on saved tensors that are the program's own."""
    pairs = _C._saved_tensors_default_hooks()
    return next((p for p in reversed(pairs) if not getattr(p[0], "_is_internal", False)), None)


class _Handle:
    """Names a value that was computed again."""


class _Holder:
    """Kept by the graph instead of a tensor: for each run of backward, the name of the value."""

    def __init__(self) -> None:
        self.handles: dict[Key, _Handle | None] = {}


class KeepInputs(Function):
    """Saves a region's inputs where hooks of an outer region see them."""

    # (It computes nothing.)
    generate_vmap_rule = True

    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        """Returns an empty tensor."""
        return _C._VariableFunctions.empty((0,))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps tensors as saved tensors and other values unchanged."""
        ctx.tensor_indices = [position for position, value in enumerate(inputs) if is_tensor(value)]
        ctx.others = [None if is_tensor(value) else value for value in inputs]
        ctx.save_for_backward(*(inputs[position] for position in ctx.tensor_indices))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Never runs: nothing is computed from the output."""
        raise AssertionError("nothing leads to the keeper of a region's inputs")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        """The output has no elements, and no tangent."""


def _inputs_of(keeper: Any) -> list[Any]:
    values = list(keeper.others)
    for position, tensor in zip(keeper.tensor_indices, keeper.saved_tensors, strict=True):
        # The dummy that makes the keeper require grad was not an argument of the region.
        values[position] = tensor
    return values[1:]


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


DETERMINISM: dict[str, Callable[[Tensor], Any]] = {
    "default": _metadata,
    "none": lambda tensor: None,
}


class Region:
    """One checkpointed call: what it saved, and what each backward computed again."""

    def __init__(
        self,
        run: Callable[..., Any],
        metadata: Callable[[Tensor], Any],
        early_stop: bool,
        explain: Callable[[CheckpointError], None] | None,
    ) -> None:
        """Begins a region.

        Args:
            run: runs the function again.
            metadata: what is compared of saved tensors.
            early_stop: whether running again ends as soon as all is there.
            explain: raises an error that says more than the one it is given.
        """
        self.run = run
        self.metadata = metadata
        self.explain = explain
        self.kept: Any = None
        self.early_stop = early_stop
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadatas: list[Any] = []
        self.is_complete = False
        self.counts: defaultdict[Key, int] = defaultdict(int)
        self.values: defaultdict[Key, weakref.WeakKeyDictionary[_Handle, Tensor]] = defaultdict(
            weakref.WeakKeyDictionary
        )
        self.done: set[Key] = set()
        self.is_short = False
        self.levels: list[int] = []

    def hooks(self) -> saved_tensors_hooks:
        """Hooks for the forward: placeholders instead of tensors."""

        def pack(tensor: Tensor) -> _Holder:
            holder = _Holder()
            self.holders.append(weakref.ref(holder))
            with no_grad():
                self.metadatas.append(self.metadata(tensor))
            return holder

        return _InternalHooks(pack, self.unpack)

    @contextlib.contextmanager
    def levels_noted(self) -> Iterator[None]:
        """Gives the levels of ``vmap`` that the region opens the numbers that they had before.

        What is computed again would otherwise be batched at other levels than the gradients that
        it meets.
        """
        _C._vmap_begin_numbers(self.levels)
        try:
            yield
        finally:
            self.levels = _C._vmap_end_numbers()

    def unpack(self, holder: _Holder) -> Tensor:
        """As :meth:`restore`, with errors explained."""
        try:
            return self.restore(holder)
        except CheckpointError as error:
            if self.explain is None:
                raise
            self.explain(error)
            raise

    def restore(self, holder: _Holder) -> Tensor:
        """The value that a placeholder stands for; the first one asked for runs the region."""
        task = _key()
        if task not in self.done:
            inputs = _inputs_of(self.kept.grad_fn)
            try:
                with self.recomputing(task), enable_grad(), self.levels_noted():
                    self.run(*inputs)
            except Stop:
                pass
            self.done.add(task)
            self.compare(task)
        if task not in holder.handles:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation: a value that backward asks for was not "
                "computed again."
            )
        handle = holder.handles[task]
        if handle is None:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once; backward calls inside of one GraphExecGroup must not overlap."
            )
        value = self.values[task][handle]
        # Handed out once, so that it is freed as soon as it has been used.
        holder.handles[task] = None
        return value

    def recomputing(self, task: Key) -> saved_tensors_hooks:
        """Hooks for the recomputation: collect what is saved, in order."""
        region = weakref.ref(self)

        def pack(tensor: Tensor) -> Tensor:
            this = region()
            assert this is not None
            index = this.counts[task]
            this.counts[task] += 1
            # (A value without history is returned itself: programs may know it by its identity.)
            value = tensor.detach() if tensor.requires_grad else tensor
            if index >= len(this.holders):
                if not this.is_complete:
                    # Backward inside the region: it goes on saving after this recomputation.
                    this.is_short = True
                    return value
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass."
                )
            holder = this.holders[index]()
            if holder is not None:
                handle = _Handle()
                holder.handles[task] = handle
                this.values[task][handle] = value
            if this.early_stop and this.counts[task] == len(this.holders):
                raise Stop
            return value

        return _InternalHooks(pack, lambda tensor: tensor)

    def compare(self, task: Key) -> None:
        """Compares the recomputation with the forward.

        Raises:
            CheckpointError: if more, fewer or other tensors were saved.
        """
        if self.is_short:
            return
        if self.counts[task] != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {self.counts[task]}."
            )
        different = []
        for index, reference in enumerate(self.holders):
            holder = reference()
            if holder is None:
                continue
            handle = holder.handles.get(task)
            if handle is None:
                continue
            now = self.metadata(self.values[task][handle])
            if now != self.metadatas[index]:
                different.append(
                    f"tensor at position {index}:\nsaved metadata: {self.metadatas[index]}\n"
                    f"recomputed metadata: {now}"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n" + "\n".join(different)
            )
