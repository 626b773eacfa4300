"""What programs of PyTorch read of nested tensors' inside, and the functions between layouts."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import pullback as torch
from pullback.fx.experimental.symbolic_shapes import is_nested_int
from pullback.nested._internal import nested_tensor as inner
from pullback.nested._internal.nested_int import NestedIntNode
from pullback.nested._internal.ops import _outer_to_inner_dim, raggedness_matches

F = torch.nn.functional
OFFSETS = [0, 2, 6, 7]


def jagged(requires_grad: bool = False) -> Any:
    torch.manual_seed(0)
    parts = [torch.randn(n, 5) for n in (2, 4, 1)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=requires_grad)


def with_holes(values: Any) -> Any:
    return torch.nested.nested_tensor_from_jagged(
        values, torch.tensor([0, 3, 6]), torch.tensor([2, 1])
    )


def test_the_class_makes_a_tensor_of_values_and_offsets() -> None:
    values, offsets = torch.arange(14.0).reshape(7, 2), torch.tensor(OFFSETS)
    x = inner.NestedTensor(values, offsets, requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    assert x._offsets is offsets
    assert x._lengths is None
    assert x._values.data_ptr() == values.data_ptr()
    assert x._ragged_idx == 1
    assert tuple(x._size) == tuple(x.shape)
    assert x._strides == x.stride()
    wide = inner.NestedTensor(torch.ones(3, 7), offsets, _ragged_idx=2)
    assert [one.shape for one in wide.unbind()] == [(3, 2), (3, 4), (3, 1)]
    with pytest.raises(RuntimeError, match="ragged dimension 0 is not one of 2"):
        inner.NestedTensor(values, offsets, _ragged_idx=0)


def test_bounds_of_the_lengths_are_kept_where_they_were_given_or_found() -> None:
    values, offsets = torch.ones(7, 2), torch.tensor(OFFSETS)
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert (x._metadata_cache, x._max_seqlen_tensor, x._maybe_max_seqlen) == ({}, None, None)
    assert (x._min_seqlen, x._max_seqlen) == (1, 4)
    y = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=0, max_seqlen=6)
    assert (y._min_seqlen, y._max_seqlen, y._maybe_min_seqlen) == (0, 6, 0)
    assert y._max_seqlen_tensor.size(0) == 6
    assert y.to_padded_tensor(0.0).shape == (3, 6, 2)
    assert (y * 2)._max_seqlen == 6
    assert (x + y).shape == x.shape
    assert set(jagged()._metadata_cache) == {"min_seqlen", "max_seqlen"}
    for kwargs in ({"max_seqlen": 3}, {"min_seqlen": 2}):
        with pytest.raises(RuntimeError, match="but a component has the length"):
            torch.nested.nested_tensor_from_jagged(values, offsets, **kwargs)


def test_offsets_stay_known_while_a_tensor_with_bounds_is_in_use() -> None:
    values, offsets = torch.ones(7, 2), torch.tensor(OFFSETS)
    x = torch.nested.nested_tensor_from_jagged(values, offsets, max_seqlen=6)
    y = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert x.shape == y.shape
    assert inner.get_tensor_symint(offsets) == x.size(1)


def test_tensors_are_taken_apart_and_put_together() -> None:
    for x in (jagged(), with_holes(torch.arange(6.0)), jagged().transpose(1, 2)):
        names, meta = x.__tensor_flatten__()
        parts = {name: getattr(x, name) for name in names}
        y = inner.NestedTensor.__tensor_unflatten__(parts, meta, None, None)
        assert y.shape == x.shape
        assert y._metadata_cache.keys() == x._metadata_cache.keys()
        assert all(map(torch.equal, x.unbind(), y.unbind()))


def test_files_keep_the_bounds() -> None:
    file = io.BytesIO()
    torch.save(jagged(), file)
    file.seek(0)
    x = torch.load(file)
    assert (x._maybe_min_seqlen, x._maybe_max_seqlen) == (1, 4)


def test_ragged_sizes_compare_as_far_as_they_are_known() -> None:
    x = jagged()
    size = x.size(1)
    assert isinstance(size, torch.SymInt)
    assert is_nested_int(size)
    assert not is_nested_int(3)
    assert size == copy.copy(size)
    assert size != jagged().size(1)
    assert size != 3
    assert size >= 2
    assert size > 1
    assert not (size < 2)
    assert not (size <= 1)
    assert 2 * size == size * 2
    assert 2 * size >= size
    assert size < 3 * size
    assert repr(torch.SymInt(NestedIntNode(7, 2))) == "2*j7"
    for relation in (lambda: size >= 3, lambda: size < 3, lambda: size <= jagged().size(1)):
        with pytest.raises(ValueError, match="is indeterminate"):
            relation()
    with pytest.raises(TypeError, match="is no single number"):
        int(size)
    with pytest.raises(RuntimeError, match=r"mul.*: invalid argument j\d+"):
        x * size


def test_views_know_what_they_show() -> None:
    x = jagged()
    assert x.view(3, -1, 5, 1)._base is x
    assert x.transpose(1, 2)._is_view()
    assert x.transpose(1, 2).select(1, 0)._base is x
    assert not (x + 1)._is_view()
    assert not x.unsqueeze(2).expand(-1, -1, 2, -1).reshape(3, -1, 10)._is_view()
    base = torch.randn(2, 3, 4)
    y = torch.nested.nested_tensor_from_jagged(base.flatten(0, 1), torch.tensor([0, 2, 6]))
    assert y._base is base
    other = torch.randn(2, 3, 4)
    replayed = y._view_func(other)
    assert replayed._base is other
    assert torch.equal(replayed.values(), other.flatten(0, 1))
    assert torch.nested.as_nested_tensor(base, layout=torch.jagged)._base is base
    assert torch.nested.as_nested_tensor(base, layout=torch.strided)._base is base
    strided = torch.nested.nested_tensor([base[0], base[1]])
    assert strided.narrow(0, 1, 1)._base is strided
    assert strided[1].data_ptr() == strided.narrow(0, 1, 1)[0].data_ptr()


def test_overloads_of_ops_find_the_rules() -> None:
    x = jagged(requires_grad=True)
    sums = torch.ops.aten.sum.dim_IntList(x, dim=(2,))
    torch.testing.assert_close(sums.values(), x.values().sum(1))
    (grad,) = torch.autograd.grad(sums.sum(), x)
    assert (grad.values() == 1).all()
    assert torch.ops.aten.mean.dim(x, dim=(0, 1), keepdim=True).shape == (1, 1, 5)
    assert torch.ops.aten._to_copy.default(x.detach(), dtype=torch.float64).dtype == torch.float64
    assert torch.ops.aten._unsafe_view(x.detach(), (3, -1, 5, 1))._base is None
    assert torch.ops.aten.sym_size.default(x) == list(x.shape)
    assert torch.ops.aten.numel.default(x) == torch.numel(x) == 35
    assert torch.Tensor.size(x, 2) == 5
    assert torch.Tensor.dim(x) == 3
    assert not torch.ops.aten.is_non_overlapping_and_dense.default(x)
    assert torch.ops.aten.is_non_overlapping_and_dense.default(torch.ones(2, 3).T)
    assert not torch.ops.aten.is_non_overlapping_and_dense.default(torch.ones(2, 3)[:, :2])
    assert torch.ops.aten.size.default(torch.ones(2, 3)) == [2, 3]
    with pytest.raises(RuntimeError, match=r"directly calling torch\.ops\.aten\.size"):
        torch.ops.aten.size.default(x)
    with pytest.raises(RuntimeError, match="along the batch dimension but not the ragged"):
        torch.ops.aten.sum.dim_IntList(x, dim=(0,))


def test_sizes_are_the_same_if_offsets_are() -> None:
    x, y = jagged(), jagged()
    assert torch.ops.aten.is_same_size(x, x * 2)
    assert not torch.ops.aten.is_same_size(x, y)
    with pytest.raises(RuntimeError, match="exact same offset tensor"):
        x.copy_(y)
    assert x.copy_(x * 2) is x


def test_layer_norm_over_the_ragged_dimension_takes_each_component_by_itself() -> None:
    x = jagged(requires_grad=True)
    result = F.layer_norm(x, normalized_shape=x.shape[1:])
    for one, other in zip(result.unbind(), x.unbind(), strict=True):
        torch.testing.assert_close(one, F.layer_norm(other, other.shape))
    (grad,) = torch.autograd.grad(result.pow(3).sum(), x)
    assert grad.shape == x.shape
    for sizes, words in (
        (x.shape, "normalizing over the batch dimension"),
        ((4, 5), "must be its last sizes"),
    ):
        with pytest.raises(RuntimeError, match=words):
            F.layer_norm(x, sizes)
    flat = x.select(2, 0)
    with pytest.raises(RuntimeError, match="with 2 or fewer dimensions"):
        F.layer_norm(flat, flat.shape[1:])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, shared: x * shared,
        lambda x, shared: F.linear(x, torch.diag(shared), shared),
        lambda x, shared: F.layer_norm(x, (2,), shared, shared),
        lambda x, shared: x @ torch.diag(shared),
    ],
)
def test_what_stands_in_holes_adds_nothing_to_gradients_of_plain_tensors(call: Any) -> None:
    values = torch.randn(6, 2, dtype=torch.float64)
    shared = torch.ones(2, dtype=torch.float64, requires_grad=True)
    x = with_holes(values)
    result = call(x, shared)
    (grad,) = torch.autograd.grad(result, shared, torch.ones_like(result))
    expected = sum(torch.autograd.grad(call(one, shared).sum(), shared)[0] for one in x.unbind())
    torch.testing.assert_close(grad, expected)


def test_permutations_are_checked() -> None:
    x = jagged().unsqueeze(-1)
    assert x.permute(0, 2, 1, -1)._ragged_idx == 2
    with pytest.raises(ValueError, match=r"input \(4\) does not match .* dimensions \(3\)"):
        x.permute(0, 2, 1)
    with pytest.raises(ValueError, match="duplicate dims are not allowed"):
        x.permute(0, 2, -2, 3)


def test_conversions_that_change_nothing_give_the_tensor_itself() -> None:
    for x in (jagged(), torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])):
        assert x.to(torch.float32) is x
        assert x.to(torch.float32, copy=True) is not x
        assert x.to(torch.float64).dtype == torch.float64
    assert x.to(x * 2) is x
    y = jagged().transpose(1, 2)
    assert not y.clone().is_contiguous()
    assert y.clone(memory_format=torch.contiguous_format).is_contiguous()


def test_apply_works_on_the_elements_in_place() -> None:
    x = jagged(requires_grad=True)
    before = x.detach().values().clone()
    assert x.apply_(lambda one: one * 2) is x
    torch.testing.assert_close(x.detach().values(), before * 2)


def test_lists_become_jagged_by_given_offsets() -> None:
    parts = [torch.randn(n, 2, requires_grad=True) for n in (2, 3)]
    x, offsets = inner.jagged_from_list(parts, None)
    y, same = inner.jagged_from_list(parts, offsets)
    assert same is offsets
    assert (x * y).shape == x.shape
    (grad,) = torch.autograd.grad((x * y).sum(), parts[0])
    torch.testing.assert_close(grad, 2 * parts[0])
    with pytest.raises(RuntimeError, match="but the offsets say"):
        inner.jagged_from_list(parts, torch.tensor([0, 1, 5]))


def test_padded_rows_become_jagged_with_their_gradient() -> None:
    x = jagged(requires_grad=True)
    y = inner.nested_from_padded(x.to_padded_tensor(9.0), x.offsets(), max_seqlen=5)
    assert y.shape == x.shape
    assert y._max_seqlen == 5
    (grad,) = torch.autograd.grad(y.pow(2).sum(), x)
    torch.testing.assert_close(grad.values(), 2 * x.detach().values())
    with pytest.raises(RuntimeError, match="do not lie within rows"):
        inner.nested_from_padded(torch.ones(3, 2), x.offsets())
    with pytest.raises(RuntimeError, match="only ragged_idx=1 supported, got 2"):
        inner.nested_from_padded(torch.ones(3, 4), x.offsets(), ragged_idx=2)


def test_older_names_lead_to_values_and_back() -> None:
    values = torch.randn(7, 2, requires_grad=True)
    bounds = {"min_seqlen": 1, "max_seqlen": 5}
    x = inner.ViewNestedFromBuffer.apply(values, torch.tensor(OFFSETS), bounds)
    assert x._max_seqlen == 5
    inner.buffer_from_jagged(x * 2).sum().backward()
    assert (values.grad == 2).all()
    rows = torch.arange(10.0).reshape(2, 5)
    y, offsets, lengths = inner.jagged_from_tensor_and_lengths(
        rows, torch.tensor([1, 0]), torch.tensor([2, 3])
    )
    assert offsets.tolist() == [1, 5, 8]
    assert lengths.tolist() == [2, 3]
    assert [one.tolist() for one in y.unbind()] == [[1.0, 2.0], [5.0, 6.0, 7.0]]
    whole, offsets, lengths = inner.jagged_from_tensor_and_lengths(
        rows, torch.tensor([1, 0]), torch.tensor([4, 3])
    )
    assert offsets.tolist() == [0, 4, 7]
    assert lengths is None
    assert whole.is_contiguous()


def test_dimensions_of_packed_values() -> None:
    x = jagged()
    assert _outer_to_inner_dim(3, (0, 1, -1), 1, canonicalize=True) == (0, 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        _outer_to_inner_dim(3, 3, 1)
    assert raggedness_matches(x, (3, -1, 8))
    assert raggedness_matches(x, x.shape)
    assert not raggedness_matches(x, (3, 4, 5))
    assert not raggedness_matches(x, (3,))


def test_a_mask_selects_the_beginnings_of_rows() -> None:
    rows = torch.arange(12.0).reshape(2, 3, 2).requires_grad_()
    mask = torch.tensor([[True, True, False], [False, False, False]])
    x = torch._nested_tensor_from_mask(rows, mask)
    assert [one.shape for one in x.unbind()] == [(2, 2), (0, 2)]
    (grad,) = torch.autograd.grad(x.to_padded_tensor(0.0).sum(), rows)
    assert grad.sum(2).tolist() == [[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert torch._nested_tensor_from_mask_left_aligned(rows, mask)
    gap = torch.tensor([[True, False, True], [True, True, True]])
    assert not torch._nested_tensor_from_mask_left_aligned(rows, gap)
    counted = torch._nested_tensor_from_mask(rows, gap, mask_check=False)
    assert [one.size(0) for one in counted.unbind()] == [2, 3]
    for given, words in (
        ((rows, gap), "left-aligned without gaps"),
        ((rows, mask.float()), "ScalarType Bool, but got"),
        ((rows, mask[:1]), "Mask size should match input size"),
        ((rows[0], mask), "should be a 3D tensor"),
        ((rows, mask[0]), "should be 2D"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch._nested_tensor_from_mask(*given)


def test_sizes_select_parts_of_padded_rows() -> None:
    padded = torch.arange(16.0).reshape(2, 2, 2, 2)
    x = torch._nested_from_padded(padded, torch.tensor([[1, 4], [2, 4]]), True)
    assert [one.tolist() for one in x.unbind()] == [
        [[0.0, 1.0, 4.0, 5.0]],
        [[8.0, 9.0, 12.0, 13.0], [10.0, 11.0, 14.0, 15.0]],
    ]
    example = torch.nested.nested_tensor([torch.ones(2, 1), torch.ones(1, 2)])
    y = torch._nested_from_padded_and_nested_example(padded[0], example)
    assert [one.tolist() for one in y.unbind()] == [[[0.0], [2.0]], [[4.0, 5.0]]]
    with pytest.raises(RuntimeError, match="expected a nested tensor of the strided layout"):
        torch._nested_from_padded_and_nested_example(padded[0], padded[0])
    for given, words in (
        ((padded[0], torch.tensor([[1, 3], [2, 2]])), "is not part of padded ones"),
        ((padded[0], torch.tensor([[1], [2]])), "expected sizes of 2 components"),
        ((padded[0], torch.tensor([[1, 1], [2, 2]]), True), r"expected \(N, H, L, D\)"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch._nested_from_padded(*given)


def test_ops_between_packed_and_padded_values() -> None:
    values = torch.arange(14.0).reshape(7, 2).requires_grad_()
    offsets = torch.tensor(OFFSETS)
    to_padded = torch.ops.aten._jagged_to_padded_dense_forward
    to_jagged = torch.ops.aten._padded_dense_to_jagged_forward
    padded = to_padded(values, [offsets], [4], -1.0)
    assert padded.shape == (3, 4, 2)
    assert (padded[2, 1:] == -1).all()
    assert torch.equal(to_padded(values, [offsets], [3], -1.0), padded[:, :3])
    assert torch.equal(to_jagged(padded, [offsets], 7), values)
    (grad,) = torch.autograd.grad(padded.pow(2).sum(), values)
    torch.testing.assert_close(grad, 2 * values.detach())
    for call, words in (
        (lambda: to_padded(values, [offsets] * 2, [4, 4]), "a single jagged dim"),
        (lambda: to_jagged(padded, [offsets.unsqueeze(1)], 7), "expected 1D offsets"),
        (lambda: to_jagged(padded, [offsets], 8), "final offset should match total_L value"),
        (lambda: to_padded(values, [torch.tensor([0, 9, 5])], [3]), "in order, got 5 after 9"),
        (lambda: to_padded(values, [torch.tensor([-1, 5])], [3]), "at least 0 in order, got -1"),
        (
            lambda: to_padded(values, [offsets.double()], [3]),
            "that are integers, got torch.float64",
        ),
        (lambda: to_padded(values, [offsets], [-3]), r"one length of at least 0, got \[-3\]"),
        (lambda: to_jagged(padded.flatten(), [offsets]), "padded dim >= 2"),
        (lambda: to_jagged(padded[:, :3], [offsets]), "found batch item of length 4"),
        (lambda: to_jagged(padded[:2], [offsets]), "expected offsets of 2 components"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_a_mask_of_more_dimensions_selects_of_each_row_of_the_last() -> None:
    source = torch.arange(12.0).reshape(2, 2, 3)
    mask = source % 2 == 0
    x = torch.nested.masked_select(source, mask)
    assert [one.tolist() for one in x.unbind()] == [[0.0, 2.0], [4.0], [6.0, 8.0], [10.0]]


def test_strided_components_lie_in_one_piece_of_memory() -> None:
    parts = [torch.arange(6.0).reshape(2, 3).T, torch.ones(2, 2)]
    x = torch.nested.as_nested_tensor(parts)
    assert x.is_contiguous()
    assert x._nested_tensor_size().tolist() == [[3, 2], [2, 2]]
    assert x._nested_tensor_strides().tolist() == [[2, 1], [2, 1]]
    assert x._nested_tensor_storage_offsets().tolist() == [0, 6]
    assert x.transpose(1, 2)._nested_tensor_strides().tolist() == [[1, 2], [1, 2]]
    assert (x * 2)._nested_tensor_storage_offsets().tolist() == [0, 6]
    assert x.data_ptr() == x[0].data_ptr()
    x.detach().mul_(2)
    assert parts[1].sum() == 4
    with pytest.raises(RuntimeError, match="Found dimension 1 for Tensor at index 1"):
        torch.nested.nested_tensor([torch.ones(()), torch.ones(0)])
    for layout in (torch.strided, torch.jagged):
        with pytest.raises(RuntimeError, match=r"Expected tensor argument to have dim.* got 1"):
            torch.nested.as_nested_tensor(torch.ones(3), layout=layout)


def test_strided_tensors_go_with_a_row_for_each_component_and_plain_batches() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    rows = torch.arange(6.0).reshape(2, 1, 3)
    for one, row in zip((x + rows).unbind(), rows, strict=True):
        assert torch.equal(one, torch.ones(one.shape) + row)
    assert (x * rows)[1].sum() == 4 * 12
    batch = torch.randn(2, 3, 5)
    for one, other in zip(x.bmm(batch).unbind(), batch, strict=True):
        torch.testing.assert_close(one, torch.ones(one.size(0), 3) @ other)
    assert batch.transpose(1, 2).bmm(x.transpose(1, 2))[1].shape == (5, 4)


def test_functional_is_found_in_the_module_of_functions() -> None:
    assert torch.functional.F is F
    with pytest.raises(AttributeError, match="has no attribute 'G'"):
        torch.functional.G  # noqa: B018
