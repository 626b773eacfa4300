"""Attention whose scores and masks are functions of the positions of query and key.

Computed by the formula: the functions are mapped over all positions (by `vmap`), and gradients are
those of the ops, by score functions' own tensors, too. Nothing is compiled.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...overrides import TorchFunctionMode
from .._native import VF as _VF
from .._native import nn as _nn
from ._block_mask import BlockMask, MaskMod, noop_mask, ordered

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` is to return besides its output.

    Args:
        lse: the logarithm of the sum of exponentials of the scores, for each query.
        max_scores: the greatest score of each query.
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results requested by :class:`AuxRequest`; the others are ``None``."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(dict[str, Any]):
    """Options of kernels for GPUs; none of them changes a result."""


def _mapped(function: Any, first: Any, count: int) -> Any:
    """``function`` over all batches, heads, queries and keys.

    Args:
        function: takes ``count`` leading arguments of all dimensions, then the four positions.
        first: the dimensions of the leading arguments, as `vmap` takes them.
        count: how many there are.
    """
    from ... import vmap

    function = _indexing(function)
    leading = (first,) * count
    for position in (3, 2, 1, 0):
        positions = [None] * 4
        positions[position] = 0  # type: ignore[call-overload]
        function = vmap(function, in_dims=(*leading, *positions))
    return function


def _indexing(function: Any) -> Any:
    """``function``, in which tensors can be indexed by positions, as ``table[head]``."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with _IndexByPlaces():
            return function(*args)

    return call


class _IndexByPlaces(TorchFunctionMode):
    """Lets a tensor without dimensions index as one with a single element does.

    Else it would be taken for a number, which a position that stands for many has not.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") == "__getitem__" and isinstance(args[0], Tensor):
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(map(_is_position, index)) and all(
                _is_position(i) or type(i) is int for i in index
            ):
                rows = [i.reshape(1) if isinstance(i, Tensor) else i for i in index]
                found: Tensor = func(args[0], tuple(rows))
                return found.squeeze(0)
        return func(*args, **(kwargs or {}))


def _is_position(value: Any) -> bool:
    """Whether something is a whole number as a tensor without dimensions."""
    if not isinstance(value, Tensor) or value.dim() != 0:
        return False
    return not (value.is_floating_point() or value.is_complex() or value.dtype is _bool())


def _bool() -> Any:
    from ... import bool as dtype

    return dtype


def _positions(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    return [_VF.arange(size, device=device) for size in sizes]


def create_mask(
    mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """A mask as a tensor ``(B, H, Q_LEN, KV_LEN)``, true where attention is paid.

    Args:
        mod_fn: a mask of batch, head, query and key, or a score function of score and these four,
            whose mask is true where a score of 0 does not become minus infinity.
        B: the batches; one unless given.
        H: the heads; one unless given.
        Q_LEN: the length of the query.
        KV_LEN: the length of the key.
        device: where it is made.

    Raises:
        AssertionError: the function takes neither four nor five arguments.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    positions = _positions(sizes, device)
    count = _positional(mod_fn)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    if count == 4:
        made = _mapped(mod_fn, None, 0)(*positions)
        result: Tensor = made.expand(sizes)
        return result
    scores = _VF.zeros(sizes, device=device)
    changed: Tensor = _mapped(mod_fn, 0, 1)(scores, *positions)
    return changed.isneginf().logical_not()


def _positional(function: Any) -> int:
    """The number of arguments that a function needs by position."""
    return sum(
        parameter.default is inspect.Parameter.empty
        and parameter.kind
        in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for parameter in inspect.signature(function).parameters.values()
    )


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The blocks of a mask.

    Args:
        mask_mod: true where attention is paid: of batch, head, query and key, all tensors.
        B: the batches; one unless given, for all.
        H: the heads; one unless given, for all.
        Q_LEN: the length of the query.
        KV_LEN: the length of the key.
        device: where it is made; in main memory unless given.
        BLOCK_SIZE: how many queries and keys a block has.
        _compile: has no effect: nothing is compiled.
        separate_full_blocks: whether blocks that are not masked at all are kept apart.
        compute_dq_write_order: has no effect: an order for kernels of GPUs.
        dq_kv_order: has no effect, as that.
    """
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = _nn.pad(mask.int(), [0, -KV_LEN % columns, 0, -Q_LEN % rows])
    high, wide = mask.size(-2) // rows, mask.size(-1) // columns
    cells = mask.view(*mask.shape[:-2], high, rows, wide, columns)
    counts = cells.sum((-3, -1))
    full = counts == rows * columns
    some = counts > 0
    if separate_full_blocks:
        parts = (*ordered(some & ~full), *ordered(full))
    else:
        parts = ordered(some)  # type: ignore[assignment]
    return BlockMask.from_kv_blocks(
        *parts,
        BLOCK_SIZE=(rows, columns),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


def _combined(masks: tuple[Any, ...], start: bool) -> MaskMod:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def combined(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        from ... import bool as dtype

        result: Tensor = _VF.full((), start, dtype=dtype, device=getattr(q, "device", None))
        for mask in masks:
            one = mask(b, h, q, k)
            result = result & one if start else result | one
        return result

    return combined


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that is true where one of some is.

    Raises:
        RuntimeError: one is no function.
    """
    return _combined(mask_mods, False)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that is true where all of some are.

    Raises:
        RuntimeError: one is no function.
    """
    return _combined(mask_mods, True)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """``softmax(score_mod(scale * Q K^T) + mask) V``; rows without any key give zeros.

    Scores are computed in single precision at least. Key and value may have other dtypes than the
    query, whose dtype the result has.

    Args:
        query: ``(B, Hq, L, E)``.
        key: ``(B, Hkv, S, E)``; one batch serves for all.
        value: ``(B, Hkv, S, Ev)``.
        score_mod: the new score of a score, batch, head, query and key, all tensors.
        block_mask: the mask.
        scale: default ``1 / sqrt(E)``.
        enable_gqa: whether each head of key and value serves ``Hq / Hkv`` heads of the query.
        return_lse: whether the logarithms of the sums are returned; ``return_aux`` is newer.
        kernel_options: has no effect: options of kernels for GPUs.
        return_aux: what else is returned.

    Returns:
        ``(B, Hq, L, Ev)``; with ``return_lse`` and a tensor ``(B, Hq, L)``, with ``return_aux``
        and an :class:`AuxOutput`.

    Raises:
        NotImplementedError: other numbers of dimensions.
        ValueError: heads, batches or features do not agree.
        RuntimeError: the mask is for other lengths.
    """
    _check(query, key, value, enable_gqa)
    batch, heads = query.shape[:2]
    if key.size(1) != heads:
        repeats = heads // key.size(1)
        key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    if key.size(0) != batch:
        key, value = (x.expand(batch, -1, -1, -1) for x in (key, value))
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = _scores(query, key) * factor
    positions = _positions(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = _mapped(score_mod, 0, 1)(scores, *positions)
    if block_mask is not None:
        allowed = _allowed(block_mask, scores, positions)
        scores = scores.masked_fill(~allowed, -math.inf)
    lse = scores.logsumexp(-1)
    # (A row without any key would be NaN.)
    empty = lse.isneginf().unsqueeze(-1)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    output = weights.to(query.dtype) @ value.to(query.dtype)
    if return_aux is not None:
        most = scores.amax(-1) if return_aux.max_scores else None
        return output, AuxOutput(lse if return_aux.lse else None, most)
    return (output, lse) if return_lse else output


def _scores(query: Tensor, key: Tensor) -> Tensor:
    if query.element_size() < 4:
        query = query.float()
    return query @ key.to(query.dtype).transpose(-2, -1)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if {query.dim(), key.dim(), value.dim()} != {4}:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(
            f"Expect key and value to agree but for features, got {key.shape} and {value.shape}."
        )
    if key.size(0) not in (query.size(0), 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or a single one of the "
            f"latter, but got Bq={query.size(0)} and Bkv={key.size(0)}."
        )
    queries, keys = query.size(1), key.size(1)
    if not enable_gqa and queries != keys:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={queries} and Hkv={keys}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and (keys == 0 or queries % keys != 0):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={queries} and Hkv={keys}."
        )


def _allowed(mask: BlockMask, scores: Tensor, positions: list[Tensor]) -> Tensor:
    """Where attention is paid: in full blocks, and in partial ones as the mask says."""
    query, key = scores.shape[-2:]
    have = mask.seq_lengths
    if query > have[0] or key > have[1]:
        raise RuntimeError(
            "block_mask was created for a smaller length than you're using it for, you likely "
            "need to create a new block mask."
        )
    if query < have[0] or key < have[1]:
        raise RuntimeError(
            "block_mask was created for a larger length than you're using it for, you can either "
            "1. create a new block mask with the correct length, or 2. 'adjust' the existing block "
            "mask to the correct length by calling block_mask._adjust(q_len, kv_len)."
        )
    for what, dim in (("batches", 0), ("heads", 1)):
        if mask.shape[dim] not in (1, scores.size(dim)):
            raise RuntimeError(
                f"block_mask has {mask.shape[dim]} {what} and the query {scores.size(dim)}: it "
                "must have as many, or one for all"
            )
    within = _mapped(mask.mask_mod, None, 0)(*positions)
    partial, full = (
        None if part is None else _spread(part, mask.BLOCK_SIZE, (query, key))
        for part in mask._parts()
    )
    result: Tensor = partial & within
    return result if full is None else result | full


def _spread(blocks: Tensor, sizes: tuple[int, int], lengths: tuple[int, int]) -> Tensor:
    """Each block as its elements."""
    rows = blocks.repeat_interleave(sizes[0], -2)[..., : lengths[0], :]
    return rows.repeat_interleave(sizes[1], -1)[..., : lengths[1]].bool()
