"""Facts about ops: what they write to, whether they draw random numbers, how much they allocate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _C
from .._tag import Tag

# Ops that fill their results from the batch alone where `training` is true, and write statistics
# aside: the arguments that they write to are the fourth and fifth, `training` the sixth.
_BATCH_NORMS = frozenset(
    ("_batch_norm_with_update", "_native_batch_norm", "_native_batch_norm_legit")
)
# In-place ops that change the geometry of a tensor, not its elements.
_UNTRACKED = frozenset(("resize_", "resize_as_", "set_"))
_SIZES_KEPT = 4096


class OpFacts:
    """Facts about one form of an op, from its signature and its traits."""

    __slots__ = (
        "func",
        "is_batch_norm",
        "is_inplace",
        "is_random",
        "is_tracked",
        "is_view",
        "name",
        "writes",
    )

    def __init__(self, func: Any) -> None:
        traits = _C._op_traits(func.name()) if hasattr(func, "name") else None
        name = getattr(func, "_opname", str(func))
        self.func, self.name = func, name
        self.is_view = traits is not None and "is_view" in traits
        schema = str(getattr(func, "_schema_text", ""))
        # An op from outside the library may draw random numbers without saying so.
        is_random = traits is None or "random" in traits or "Generator" in schema
        self.is_random = is_random or Tag.nondeterministic_seeded in func.tags
        self.is_inplace = name.endswith("_") and not name.endswith("__")
        self.is_batch_norm = name in _BATCH_NORMS
        self.is_tracked = name not in _UNTRACKED
        self.writes = self.is_inplace or "!" in schema

    def written_tensors(self, args: Any, kwargs: Any, tensors: list[Any]) -> list[Any]:
        """The tensors that a call writes to; all of them where the signature does not say."""
        if self.is_batch_norm:
            is_training = len(args) > 5 and bool(args[5])
            return [t for t in args[3:5] if t is not None] if is_training else []
        if self.is_inplace:
            first = args[0] if args else None
            return list(first) if isinstance(first, (tuple, list)) else [first]
        out = kwargs.get("out")
        if out is not None:
            return list(out) if isinstance(out, (tuple, list)) else [out]
        return tensors if self.writes else []


_facts: dict[Any, OpFacts] = {}


def facts_of(func: Any) -> OpFacts:
    """The facts about an op."""
    found = _facts.get(func)
    if found is None:
        found = _facts[func] = OpFacts(func)
    return found


def _describe(values: Iterable[Any], key: list[Any]) -> None:
    """Writes the properties that sizes depend on into a key: tensors as dtype, shape, strides."""
    for value in values:
        if isinstance(value, _C.TensorBase):
            key += (value.dtype, value.shape, value.stride())
        elif isinstance(value, (tuple, list)):
            key.append(len(value))
            _describe(value, key)
        else:
            # (1, 1.0 and True are equal, and give results of different dtypes.)
            key += (type(value), value)


def _on_meta(value: Any) -> Any:
    if isinstance(value, _C.TensorBase):
        return _C._VariableFunctions.empty_strided(
            tuple(value.shape), value.stride(), dtype=value.dtype, device="meta"
        )
    if isinstance(value, (tuple, list)):
        return type(value)(map(_on_meta, value)) if type(value) in (tuple, list) else value
    return _C.device("meta") if isinstance(value, _C.device) else value


def _storages(value: Any, found: dict[int, int]) -> dict[int, int]:
    """The bytes of the blocks of all tensors' storages, by storage."""
    if isinstance(value, _C.TensorBase):
        storage = value.untyped_storage()
        found[storage._cdata] = block_bytes(storage.nbytes())
    elif isinstance(value, (tuple, list)):
        for item in value:
            _storages(item, found)
    return found


class Sizes:
    """The number of bytes that calls allocate, by op and shapes of arguments."""

    def __init__(self) -> None:
        self._known: dict[Any, list[Any]] = {}

    def of(self, facts: OpFacts, args: Any, kwargs: Any) -> list[Any]:
        """A list: bytes of the results, what the call was seen to need beyond these, its seconds.

        The bytes are found by running the op on the meta device, where nothing is computed; what
        cannot run there counts with the bytes of its arguments.
        """
        try:
            parts = [facts.func, len(args)]
            _describe(args, parts)
            if kwargs:
                parts += kwargs
                _describe(kwargs.values(), parts)
            key = tuple(parts)
            known = self._known.get(key)
        except (TypeError, RuntimeError):
            # (Arguments that cannot be compared, or a tensor without strides.)
            return [_argument_bytes(args), 0, 0.0]
        if known is None:
            if len(self._known) >= _SIZES_KEPT:
                self._known.clear()
            known = self._known[key] = [self._find(facts, args, kwargs), 0, 0.0]
        return known

    @staticmethod
    def _find(facts: OpFacts, args: Any, kwargs: Any) -> int:
        if facts.is_view or facts.is_inplace:
            return 0
        try:
            with _C._DisableTorchDispatch(), _C.DisableTorchFunction():
                named = {key: _on_meta(value) for key, value in kwargs.items()}
                if "device" in named or not any(_has_tensor(value) for value in args):
                    named["device"] = _C.device("meta")
                given = [_on_meta(value) for value in args]
                before = _storages([given, list(named.values())], {})
                found = _storages(facts.func(*given, **named), {})
                # (A result that shows the memory of an argument takes no bytes.)
                return sum(size for key, size in found.items() if key not in before)
        except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
            return _argument_bytes(args)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_tensor, value))
    return isinstance(value, _C.TensorBase)


def _argument_bytes(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return sum(map(_argument_bytes, value))
    if not isinstance(value, _C.TensorBase):
        return 0
    return block_bytes(value.numel() * value.element_size())


def block_bytes(size: int) -> int:
    """The size of the allocator's block for so many bytes (``tensor/memory.rs``)."""
    if size <= 4096:
        return -(-size // 64) * 64
    step = max((1 << (size - 1).bit_length()) // 16, 64)
    return -(-size // step) * step


#: Shapes are the same in all regions.
SIZES = Sizes()
