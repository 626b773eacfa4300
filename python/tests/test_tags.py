"""`torch.Tag` and the tags of ops are PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback as torch

aten: Any = torch.ops.aten
Tag = torch.Tag


def test_members_are_numbered_and_print_as_pytorchs() -> None:
    assert [int(tag) for tag in Tag] == list(range(20))
    assert (Tag.core.name, Tag.core.value, repr(Tag.core)) == ("core", 0, "<Tag.core: 0>")
    assert str(Tag.view_copy) == "Tag.view_copy"
    assert Tag(3) is Tag.dynamic_output_shape
    assert not isinstance(Tag.core, int)
    assert copy.deepcopy(Tag.core) is Tag.core
    assert pickle.loads(pickle.dumps(Tag.reduction)) is Tag.reduction
    assert Tag.__module__ == torch.__name__


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        # Recorded from PyTorch 2.15.
        (aten.add.Tensor, "core pointwise pt2_compliant_tag"),
        (aten.add_.Tensor, "inplace pointwise pt2_compliant_tag"),
        (aten.add.out, "out pointwise pt2_compliant_tag"),
        (aten.bernoulli.default, "nondeterministic_seeded pt2_compliant_tag"),
        (aten.native_dropout.default, "core nondeterministic_seeded pt2_compliant_tag"),
        (aten.nonzero.default, "core dynamic_output_shape pt2_compliant_tag"),
        (aten._local_scalar_dense.default, "core data_dependent_output pt2_compliant_tag"),
        (aten.sum.dim_IntList, "core pt2_compliant_tag reduction"),
        (aten.view.default, "core pt2_compliant_tag"),
        (aten.t_.default, "inplace inplace_view pt2_compliant_tag"),
    ],
)
def test_tags_of_ops(op: Any, expected: str) -> None:
    assert [tag.name for tag in op.tags] == expected.split()


def test_ops_of_programs_have_the_tags_they_were_defined_with() -> None:
    library = torch.library.Library("test_tags", "DEF")
    library.define("both(Tensor x) -> Tensor", tags=(Tag.pointwise, Tag.core))
    library.define("none(Tensor x) -> Tensor")
    library.define("one(Tensor x) -> Tensor", tags=Tag.reduction)
    mine: Any = torch.ops.test_tags
    assert mine.both.default.tags == [Tag.pointwise, Tag.core]
    assert mine.none.default.tags == []
    assert mine.one.default.tags == [Tag.reduction]
    with pytest.raises(TypeError, match="tags must be"):
        library.define("wrong(Tensor x) -> Tensor", tags="core")

    def made(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    torch.library.custom_op("test_tags::made", made, mutates_args=(), tags=(Tag.reduction,))
    assert mine.made.default.tags == [Tag.pt2_compliant_tag, Tag.reduction]
