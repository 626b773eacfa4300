"""``MaskedTensor`` of sparse data: patterns, what is computed on values, gradients and layouts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback as torch
from pullback.masked import MaskedTensor, as_masked_tensor, masked_tensor
from pullback.masked.maskedtensor import binary, core, passthrough, reductions, unary

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*prototype stage:UserWarning"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled:UserWarning"),
]

DATA = torch.tensor([[0.3, -0.8, 0.5, 0.9], [-0.2, 0.7, 0.4, -0.6], [0.1, 0.2, -0.9, 0.8]])
DATA = DATA.double()
MASK = torch.tensor([[True, False, True, True], [True, True, False, True], [False] * 4])
LAYOUTS = [torch.sparse_coo, torch.sparse_csr]
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=["coo", "csr"])


def pattern(layout: Any, mask: torch.Tensor = MASK) -> torch.Tensor:
    return mask.to_sparse_csr() if layout is torch.sparse_csr else mask.to_sparse_coo().coalesce()


def example(layout: Any, requires_grad: bool = False, data: torch.Tensor = DATA) -> MaskedTensor:
    mask = pattern(layout)
    return masked_tensor(data.sparse_mask(mask), mask, requires_grad)


def dense(x: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Data and mask as strided tensors, with zeros where nothing counts."""
    assert isinstance(x, MaskedTensor)
    y = x.to_dense()
    assert y.layout is torch.strided
    return torch.where(y.get_mask(), y.get_data(), 0.0), y.get_mask()


def check(x: Any, layout: Any, data: torch.Tensor, mask: torch.Tensor = MASK) -> None:
    assert x.layout is x.get_data().layout is x.get_mask().layout is layout
    values, flags = dense(x)
    assert torch.equal(flags, mask)
    assert torch.allclose(values.double(), torch.where(mask, data, 0.0).double(), rtol=1e-14)


@each_layout
def test_it_says_its_layout(layout: Any) -> None:
    x = example(layout)
    assert (x.layout, x.shape, x.is_sparse) == (layout, (3, 4), True)
    assert x.is_sparse_coo() is (layout is torch.sparse_coo)
    assert x.is_sparse_csr() is (layout is torch.sparse_csr)
    check(x, layout, DATA)
    assert repr(x) == repr(masked_tensor(DATA, MASK))
    assert torch.equal(x.to_tensor(7), torch.where(MASK, DATA, 7.0))
    check(copy.deepcopy(x), layout, DATA)
    check(pickle.loads(pickle.dumps(x)), layout, DATA)
    for method in ("is_contiguous", "contiguous"):
        with pytest.raises(ValueError, match="with sparse data do not have is_contiguous"):
            getattr(x, method)()


def test_layouts_are_made_of_each_other() -> None:
    strided = masked_tensor(DATA, MASK)
    check(strided.to_sparse(), torch.sparse_coo, DATA)
    check(strided.to_sparse_coo().to_sparse_csr(), torch.sparse_csr, DATA)
    check(strided.to_sparse_csr().to_sparse(), torch.sparse_coo, DATA)
    assert strided.to_dense() is strided
    assert example(torch.sparse_coo).to_dense(torch.float32).dtype is torch.float32
    scalar = masked_tensor(DATA[0, 0], MASK[0, 0])
    assert scalar.to_sparse().to_dense().sum().item() == DATA[0, 0].item()
    empty = masked_tensor(DATA, torch.zeros_like(MASK)).to_sparse()
    assert not empty.to_dense().get_mask().any()
    for count in (True, False):
        mask = torch.tensor(count).to_sparse_coo().coalesce()
        x = masked_tensor(torch.tensor(2.0).sparse_mask(mask), mask, requires_grad=True)
        x.to_dense().square().sum().backward()
        assert dense(x.grad)[0].item() == (4.0 if count else 0.0)


def test_entries_that_the_mask_specifies_as_false_do_not_count() -> None:
    mask = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([True, False]), (3,))
    data = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([4.0, 5.0]), (3,))
    x = masked_tensor(data, mask, requires_grad=True)
    (x * x).sum().backward()
    assert x.sum().item() == 4.0
    assert dense(x.grad)[0].tolist() == [8.0, 0.0, 0.0]
    assert dense(x)[1].tolist() == [True, False, False]


@each_layout
def test_values_are_computed_on_the_pattern(layout: Any) -> None:
    x, y = example(layout), example(layout, data=DATA + 2)
    check(x.exp(), layout, DATA.exp())
    check(torch.clamp(x, -0.5, 0.5), layout, DATA.clamp(-0.5, 0.5))
    check(x.to(torch.float32), layout, DATA.float())
    check(x + y, layout, 2 * DATA + 2)
    check(2 - x, layout, 2 - DATA)
    check(x * (DATA + 1), layout, DATA * (DATA + 1))
    check(DATA[0] * x, layout, DATA * DATA[0])
    check(x / torch.tensor(4.0), layout, DATA / 4)
    check(x + (DATA + 1).sparse_mask(pattern(layout)), layout, 2 * DATA + 1)
    check(torch.zeros_like(x), layout, torch.zeros_like(DATA))
    check(x.clone(), layout, DATA)
    assert x.add_(y) is x
    check(x.mul_(2.0).neg_(), layout, -2 * (2 * DATA + 2))
    with pytest.raises(RuntimeError, match="mul_: sparse MaskedTensors that require grad"):
        example(layout, requires_grad=True).mul_(2.0)


@each_layout
def test_reductions_pass_over_what_is_masked_out(layout: Any) -> None:
    x, strided = example(layout), masked_tensor(DATA, MASK)
    for name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std", "norm"):
        found, expected = getattr(x, name)(), getattr(strided, name)()
        assert found.layout is torch.strided
        assert torch.allclose(found.get_data().double(), expected.get_data().double()), name
    for dim in (0, 1):
        for name in ("sum", "amax", "argmin", "mean"):
            found, expected = getattr(x, name)(dim), getattr(strided, name)(dim)
            assert torch.equal(found.get_mask(), expected.get_mask())
            assert torch.equal(dense(found)[0], dense(expected)[0]), name
    assert (x > 0.35).any().item()
    assert not (x > 0.35).all().item()
    assert (x > 0.35)._is_any_true().item()
    with pytest.raises(ValueError, match="expected a boolean tensor"):
        x._is_any_true()


@each_layout
def test_gradients_have_the_pattern(layout: Any) -> None:
    x = example(layout, requires_grad=True)
    (x.exp() * x).sum().backward()
    check(x.grad, layout, DATA.exp() * (DATA + 1))
    x = example(layout, requires_grad=True)
    (x.to_dense() * DATA).sum().backward()
    check(x.grad, layout, DATA)
    x = example(layout, requires_grad=True)
    (x * x).sum(0).sum().backward()
    check(x.grad, layout, 2 * DATA)
    with torch.autograd.detect_anomaly():
        x = example(layout, requires_grad=True)
        x.mean().backward()
    check(x.grad, layout, torch.full_like(DATA, 1 / 6))


@each_layout
def test_gradients_reach_strided_data_through_a_sparse_one(layout: Any) -> None:
    x = masked_tensor(DATA, MASK, requires_grad=True)
    (x.to_sparse() if layout is torch.sparse_coo else x.to_sparse_csr()).sin().sum().backward()
    check(x.grad, torch.strided, DATA.cos())
    plain = DATA.clone().requires_grad_()
    as_masked_tensor(plain, MASK).to_sparse().square().sum().backward()
    check(plain.grad, torch.strided, 2 * DATA)
    factor = DATA.clone().requires_grad_()
    (example(layout) * factor).sum().backward()
    assert torch.allclose(factor.grad, torch.where(MASK, DATA, 0.0))
    values = DATA.sparse_mask(pattern(layout)).requires_grad_()
    as_masked_tensor(values, pattern(layout)).exp().sum().backward()
    check(values.grad, layout, DATA.exp())
    x = example(layout, requires_grad=True)
    x.get_data().to_dense().square().sum().backward()
    check(x.grad, layout, 2 * DATA)


def test_patterns_must_fit() -> None:
    at, other = torch.tensor([[0, 1], [2, 0]]), torch.tensor([[0, 1], [2, 1]])
    flags = torch.tensor([True, True])
    data = torch.sparse_coo_tensor(at, torch.tensor([3.0, 4.0]), (2, 3))
    mask = torch.sparse_coo_tensor(other, flags, (2, 3))
    with pytest.raises(ValueError, match="sparse COO tensors but do not have the same indices"):
        masked_tensor(data, mask)
    words = "sparse CSR tensors but do not share either crow or col indices"
    with pytest.raises(ValueError, match=words):
        masked_tensor(data.to_sparse_csr(), mask.to_sparse_csr())
    fewer = masked_tensor(DATA.to_sparse_coo(), MASK.to_sparse_coo())
    check(fewer, torch.sparse_coo, DATA)
    shuffled = torch.sparse_coo_tensor(at.flip(1), torch.tensor([4.0, 3.0]), (2, 3))
    x = masked_tensor(shuffled, torch.sparse_coo_tensor(at, flags, (2, 3)))
    assert dense(x)[0].tolist() == [[0, 0, 3], [4, 0, 0]]
    with pytest.raises(TypeError, match=r"data layout of torch.sparse_csc is not supported"):
        masked_tensor(DATA.to_sparse_csc(), MASK.to_sparse_csc())
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can"):
        masked_tensor(MASK, MASK, requires_grad=True)


@each_layout
def test_two_operands_have_one_pattern_and_layout(layout: Any) -> None:
    x = example(layout)
    opposite = pattern(layout, ~MASK)
    y = masked_tensor(DATA.sparse_mask(opposite), opposite)
    with pytest.raises(ValueError, match="Input masks must match"):
        x + y
    with pytest.raises(ValueError, match=r"must have the same layout. Got torch.sparse_c"):
        x + masked_tensor(DATA, MASK)
    for call in (lambda: x[0], lambda: x.t(), lambda: torch.where(MASK, x, 0.0)):
        with pytest.raises(TypeError, match="not supported for sparse MaskedTensors; use to_dense"):
            call()


def test_blocks_of_a_picture_take_their_mask_along() -> None:
    torch.manual_seed(0)
    data, mask = torch.rand(2, 3, 4, 5), torch.rand(2, 3, 4, 5) > 0.5
    x = masked_tensor(data, mask, requires_grad=True)
    columns = torch.nn.functional.unfold(x, (2, 3))
    assert torch.equal(columns.get_data(), torch.nn.functional.unfold(data, (2, 3)))
    assert torch.equal(columns.get_mask(), torch.nn.functional.unfold(mask.double(), (2, 3)) > 0)
    columns.sum().backward()
    plain = data.clone().requires_grad_()
    torch.nn.functional.unfold(plain, (2, 3)).sum().backward()
    assert torch.equal(dense(x.grad)[0], torch.where(mask, plain.grad, 0.0))


def test_comparisons_of_masks_and_tensors() -> None:
    x, y = masked_tensor(DATA, MASK), masked_tensor(DATA, ~MASK)
    assert core._masks_match(x, x)
    assert core._masks_match(x, DATA)
    assert not core._masks_match(x, y)
    for layout in LAYOUTS:
        assert core._masks_match(example(layout), example(layout))
        plain = DATA.sparse_mask(pattern(layout))
        assert core._tensors_match(plain, plain.clone())
        assert not core._tensors_match(plain, DATA.sparse_mask(pattern(layout, ~MASK)))
    assert core._tensors_match(DATA, DATA + 1e-9, exact=False)
    assert not core._tensors_match(DATA, DATA + 1e-9)
    assert not core._tensors_match(DATA, DATA[0])
    with pytest.raises(ValueError, match="can be a MaskedTensor"):
        core._tensors_match(x, DATA)
    with pytest.raises(ValueError, match="must have the same layout"):
        core._tensors_match(DATA, DATA.to_sparse())
    assert core._get_data(x) is x._masked_data
    assert core._get_data(DATA) is DATA
    assert core._maybe_get_mask(DATA) is None


def test_lists_of_operations_name_ops_that_masked_tensors_have() -> None:
    x = masked_tensor(DATA.abs() / 2, MASK)
    for function, name in unary.NATIVE_UNARY_MAP.items():
        source = masked_tensor((DATA * 9).to(torch.int8), MASK) if name == "bitwise_not" else x
        more = {"clamp": (0.1,), "clip": (0.1,), "pow": (2.0,)}.get(name, ())
        assert isinstance(function(source, *more), MaskedTensor), name
    assert {f"{name}" for name in unary.INPLACE_UNARY_NAMES} >= {"abs_", "pow_", "fix_"}
    whole = masked_tensor((DATA * 9).to(torch.int64).abs(), MASK)
    for function, name in binary.NATIVE_BINARY_MAP.items():
        is_real = name in ("logaddexp", "logaddexp2", "nextafter")
        operand = x if is_real else whole
        assert isinstance(function(operand, operand.clone() + 1), MaskedTensor), name
    for function, name in reductions.NATIVE_REDUCE_MAP.items():
        assert isinstance(function(x, *((2,) if name == "norm" else ())), MaskedTensor), name
    assert torch.ops.aten.stack in passthrough.PASSTHROUGH_FNS


def test_second_names_of_ops_are_packets() -> None:
    x = torch.tensor([-1.5, 2.0])
    assert torch.ops.aten.absolute(x).tolist() == [1.5, 2.0]
    assert torch.ops.aten.subtract(x, x, alpha=2).tolist() == [1.5, -2.0]
    assert torch.ops.aten.divide(x, x, rounding_mode="floor").tolist() == [1, 1]
    assert torch.ops.aten.fix_.default(x) is x
    assert x.tolist() == [-1, 2]
    overload = torch.ops.aten.absolute.default
    assert (overload.name(), str(overload)) == ("aten::absolute", "aten.absolute.default")
    assert str(overload._schema).startswith("aten::absolute(Tensor self")
    assert overload.has_kernel_for_dispatch_key("CompositeImplicitAutograd")
    assert not overload.has_kernel_for_dispatch_key("CPU")
    assert torch.ops.aten.greater.Tensor(x, torch.tensor(0)).tolist() == [False, True]
    assert copy.deepcopy(overload) is overload
    assert not hasattr(torch.ops.aten, "absolutely")
