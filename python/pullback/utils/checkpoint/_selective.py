"""Selective checkpointing: results of chosen ops are kept, the others are computed again.

The forward runs under a mode that asks a policy for each op, and keeps the results of those that
are to be saved; the recomputation runs under one that gives these out instead of running the ops.
The two share a store: for each op, its calls in order. Invariant: an entry is given out once.
"""

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._ops import OpOverload, OpOverloadPacket, aten
from .._python_dispatch import TorchDispatchMode
from .._pytree import tree_map
from ._region import is_tensor, program_hooks

if TYPE_CHECKING:
    from typing_extensions import Self


class CheckpointPolicy(enum.Enum):
    """How an op's results are treated in selective checkpointing.

    ``*_SAVE`` keeps them; ``*_RECOMPUTE`` computes them again in backward. ``*_CPU_OFFLOAD`` means
    in main memory: as in PyTorch's eager mode they are computed again. ``MUST`` and ``PREFER``
    differ only for programs that are compiled.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
Policy = Callable[..., CheckpointPolicy | bool]


class SelectiveCheckpointContext:
    """The context that a policy receives beside the op and its arguments.

    Attributes:
        is_recompute: always False: policies are asked in the forward alone.
        op_output: the results of the op.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _VersionWrapper:
    """A kept value, and if it is a tensor the version that it had."""

    def __init__(self, val: Any, unpack_hook: Callable[[Any], Any] | None = None) -> None:
        self.val = val
        self.version = val._version if is_tensor(val) else None
        self.unpack_hook = unpack_hook

    def get_val(self, allow_cache_entry_mutation: bool) -> Any:
        """The value.

        Raises:
            RuntimeError: if it was written to, unless that is allowed.
        """
        is_mutated = self.version is not None and self.val._version != self.version
        if is_mutated and not allow_cache_entry_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.val if self.unpack_hook is None else self.unpack_hook(self.val)


# Stand in the store for a result that is computed again, and for one that was handed out.
_RECOMPUTE = object()
_CONSUMED = object()
Storage = defaultdict[OpOverload, dict[int, Any]]

# The mechanism itself detaches, and not as often in the forward as in the recomputation.
SAC_IGNORED_OPS = frozenset({aten.detach.default})


class _CachingTorchDispatchMode(TorchDispatchMode):
    """The mode of the forward: runs ops, and keeps the results that the policy selects."""

    def __init__(self, policy_fn: Policy, storage: Storage, ac_graph_id: Any = None) -> None:
        super().__init__()
        self.policy_fn = policy_fn
        self.storage = storage
        self.ac_graph_id = ac_graph_id
        # Whether hooks on saved tensors pack what is kept; None: they do not, with a warning.
        self.respect_saved_tensors_hooks: bool | None = None
        self.func_counter: defaultdict[OpOverload, int] = defaultdict(int)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """True."""
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the op, asks the policy and keeps the results, or a note that none are kept."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        index = self.func_counter[func]
        self.func_counter[func] += 1
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        policy = self.policy_fn(context, func, *args, **kwargs)
        if policy is True or policy in _SAVE:
            self.storage[func][index] = self._kept(out)
        else:
            self.storage[func][index] = _RECOMPUTE
        return out

    def _kept(self, out: Any) -> Any:
        """The form of kept results: without history, which would lead back to the store."""
        hooks = self._hooks()

        def wrap(value: Any) -> _VersionWrapper:
            if not is_tensor(value):
                return _VersionWrapper(value)
            value = value.detach()
            if hooks is None:
                return _VersionWrapper(value)
            return _VersionWrapper(hooks[0](value), unpack_hook=hooks[1])

        return tree_map(wrap, out)

    def _hooks(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
        """The program's hooks on saved tensors, if they pack what is kept here too."""
        hooks = program_hooks()
        if hooks is not None and self.respect_saved_tensors_hooks is None:
            warnings.warn(
                "Hooks on saved tensors (such as save_on_cpu) are in use around a region of "
                "selective checkpointing. They do not see the tensors that it keeps; in a later "
                "release they will. Pass respect_saved_tensors_hooks=True or False to "
                "torch.utils.checkpoint.checkpoint to say which is meant.",
                FutureWarning,
                stacklevel=2,
            )
        return hooks if self.respect_saved_tensors_hooks else None


class _CachedTorchDispatchMode(TorchDispatchMode):
    """The mode of the recomputation: returns the kept results."""

    def __init__(
        self, policy_fn: Policy | None, storage: Storage, allow_cache_entry_mutation: bool = False
    ) -> None:
        super().__init__()
        self.storage = storage
        self.allow_cache_entry_mutation = allow_cache_entry_mutation
        self.func_counter: defaultdict[OpOverload, int] = defaultdict(int)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """True."""
        return True

    def __enter__(self) -> Self:
        # From the start, so that a second recomputation finds that the first one took everything.
        self.func_counter.clear()
        return super().__enter__()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Returns the kept results of the op, or runs it.

        Raises:
            RuntimeError: if the forward had no such op, or the results were given out before or
                written to.
        """
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        index = self.func_counter[func]
        self.func_counter[func] += 1
        entry = self._entry(func, index)
        if entry is _RECOMPUTE:
            return func(*args, **(kwargs or {}))
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        self.storage[func][index] = _CONSUMED
        return tree_map(lambda kept: kept.get_val(self.allow_cache_entry_mutation), entry)

    def _entry(self, func: OpOverload, index: int) -> Any:
        calls = self.storage.get(func)
        if calls is not None and index in calls:
            return calls[index]
        what = f"{func}" if calls is None else f"{func} invocation index {index}"
        raise RuntimeError(
            f"{what} encountered during backward but not found in storage: the region did "
            "something else when it ran again. It must not depend on anything that changes between "
            "forward and backward."
        )


def _policy_of(ops: list[Any]) -> Policy:
    for op in ops:
        if isinstance(op, OpOverload):
            continue
        advice = ""
        if isinstance(op, OpOverloadPacket):
            advice = (
                " Please update the OpOverloadPacket to a specific OpOverload, such as "
                f"torch.ops.{op}.{op.overloads()[0]} instead of torch.ops.{op}."
            )
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}."
            + advice
        )

    def policy(
        context: SelectiveCheckpointContext, op: OpOverload, *args: Any, **kwargs: Any
    ) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in ops else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The contexts of a region in which the results of chosen ops are kept.

    Meant as ``context_fn`` of :func:`checkpoint`, with ``functools.partial``.

    Args:
        policy_fn_or_list: ``policy(context, op, *args, **kwargs)``, which gives a
            :class:`CheckpointPolicy` (or True for saving) for each op of the forward; or a list of
            ops, ``torch.ops.aten.mm.default``, whose results are saved.
        allow_cache_entry_mutation: whether results that are kept may be written to before they are
            given out.

    Returns:
        The context for the forward and that for the recomputation.

    Raises:
        ValueError: for a list with something else than overloads of ops.
        TypeError: for anything but a function or a list.
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(dict)
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation),
    )
