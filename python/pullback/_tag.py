"""``torch.Tag``: facts about ops, as PyTorch states them for the same ops (``op.tags``)."""

from __future__ import annotations

import enum
from pathlib import Path

from . import _C

__all__ = ["Tag"]


class Tag(enum.Enum):
    """A fact about an op, one of ``op.tags``."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<Tag.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"Tag.{self.name}"


Tag.__module__ = __name__.rpartition(".")[0]

# Tags by which the library describes ops that PyTorch does not have.
_WORDS = {
    "random": Tag.nondeterministic_seeded,
    "pointwise": Tag.pointwise,
    "dynamic_output_shape": Tag.dynamic_output_shape,
    "data_dependent_output": Tag.data_dependent_output,
}
_table: dict[str, list[Tag]] = {}


def tags_of(name: str) -> list[Tag]:
    """The tags of an op of the library, in the order of their numbers.

    Args:
        name: with namespace, ``aten::mul.Tensor``.
    """
    if not _table:
        text = Path(__file__).with_name("_op_tags.tsv").read_text(encoding="ascii")
        found: dict[str, list[Tag]] = {}
        for line in text.splitlines():
            tag, _, ops = line.partition("\t")
            if not line.startswith("#"):
                for op in ops.split():
                    found.setdefault(op, []).append(Tag[tag])
        _table.update(found)
    known = _table.get(name.removeprefix("aten::"))
    if known is None:
        words = _C._op_traits(name) or ()
        known = [Tag.pt2_compliant_tag, *(_WORDS[word] for word in words if word in _WORDS)]
    return sorted(known, key=int)
