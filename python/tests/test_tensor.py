"""What tensors do as Python values, and how bad input is refused."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from operator import add, iadd
from typing import Any

import pytest

import pullback as torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [*FLOATS, *INTS, torch.bool, *COMPLEX]


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_item_and_tolist(dtype: Any) -> None:
    x = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    kind = bool if dtype is torch.bool else int
    kind = float if dtype in FLOATS else complex if dtype in COMPLEX else kind
    assert x.tolist() == [[0, 1], [1, 0]]
    assert type(x.tolist()[0][0]) is kind
    assert type(x[0, 1].item()) is kind
    assert torch.tensor(1).to(dtype).tolist() == 1
    assert torch.zeros(2, 0, dtype=dtype).tolist() == [[], []]


def test_item_needs_one_element() -> None:
    assert torch.tensor([[[3]]]).item() == 3
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be"):
        torch.ones(2).item()
    with pytest.raises(RuntimeError, match="a Tensor with 0 elements cannot be converted"):
        torch.ones(0).item()


def test_numbers() -> None:
    x = torch.tensor([2.75])
    assert (int(x), float(x), complex(x)) == (2, 2.75, 2.75 + 0j)
    assert operator.index(torch.tensor(3)) == 3
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert f"{torch.tensor(2.5):.2f}" == "2.50"
    for wrong in (torch.tensor(2.5), torch.tensor([1, 2])):
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            operator.index(wrong)
    for convert in (int, float, complex):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            convert(torch.ones(2))


def test_truth() -> None:
    assert torch.tensor([2])
    assert not torch.tensor(0.0)
    assert torch.tensor(math.nan)
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(torch.ones(0))


def test_length_and_iteration() -> None:
    assert len(torch.zeros(3, 2)) == 3
    assert [r.tolist() for r in torch.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert [r.tolist() for r in reversed(torch.tensor([1, 2]))] == [2, 1]
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1))
    first, second = torch.tensor([1, 2])
    assert (first.item(), second.item()) == (1, 2)


def test_membership() -> None:
    x = torch.tensor([1.0, 2.0])
    assert 2 in x
    assert 3 not in x
    assert torch.tensor(1.0) in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        _ = "a" in x


def test_shapes_are_sizes() -> None:
    x = torch.zeros(2, 3)
    assert isinstance(x.shape, torch.Size)
    assert x.shape == (2, 3)
    assert x.shape.numel() == 6
    assert (x.size(-1), x.dim(), x.ndim, x.numel()) == (3, 2, 2, 6)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.size(2)


def _each_change_of_shape(x: Any) -> Any:
    yield x.t_(), (3, 2)
    yield x.unsqueeze_(0), (1, 3, 2)
    yield x.squeeze_(), (3, 2)
    yield x.resize_(2, 2), (2, 2)
    yield x.set_(torch.zeros(5)), (5,)
    yield x.resize_(1, 1, 1, 1, 1, 1, 2), (1, 1, 1, 1, 1, 1, 2)
    yield x.set_(), (0,)


def test_shape_follows_changes_in_place() -> None:
    x = torch.zeros(2, 3)
    assert x.shape is x.shape
    kept = x.shape
    for changed, shape in _each_change_of_shape(x):
        assert changed is x
        assert x.shape == shape
    assert kept == (2, 3)


@pytest.mark.parametrize(
    "cls", [torch.Tensor, torch.nn.Parameter, type("Sub", (torch.Tensor,), {})]
)
def test_dtype_follows_changes_in_place(cls: Any) -> None:
    x = torch.zeros(2).as_subclass(cls)
    for dtype in (torch.float64, torch.bfloat16, torch.int8, torch.float32):
        x.data = torch.ones(3, dtype=dtype)
        assert x.dtype is dtype
        assert x.shape == (3,)
    with pytest.raises(AttributeError):
        x.dtype = torch.float64
    with pytest.raises(AttributeError):
        del x.dtype
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    layer.half()
    assert weight.dtype is torch.float16
    x.__class__ = torch.Tensor
    assert x.dtype is torch.float32


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("target", ALL, ids=str)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_conversions(source: Any, target: Any) -> None:
    x = torch.tensor([0, 1, 1]).to(source)
    y = x.to(target)
    assert y.dtype == target
    assert y.tolist() == [0, 1, 1]
    assert (y is x) == (source == target)
    assert x.to(target, copy=True) is not x


def test_conversions_round_to_zero_and_wrap() -> None:
    assert torch.tensor([1.9, -1.9]).long().tolist() == [1, -1]
    assert torch.tensor([300, -1]).to(torch.uint8).tolist() == [44, 255]
    assert torch.tensor([0.5, 0.0, math.nan]).bool().tolist() == [True, False, True]
    assert torch.tensor(1e30).half().item() == math.inf
    assert torch.tensor(2**24 + 1).float().item() == 2**24


def test_promotion() -> None:
    assert (torch.ones(1, dtype=torch.int32) + 1.5).dtype == torch.float32
    assert (torch.ones(1, dtype=torch.half) + torch.tensor(1.0)).dtype == torch.half
    assert (torch.ones(1) + torch.ones(1, dtype=torch.float64)).dtype == torch.float64
    assert (torch.ones(1, dtype=torch.bool) + True).dtype == torch.bool
    assert (torch.ones(1, dtype=torch.int8) / 2).dtype == torch.float32
    assert (torch.ones(1) * 1j).dtype == torch.complex64


# --- bad input -----------------------------------------------------------------------------------

X = torch.ones(2, 3)
BAD: list[tuple[str, type[Exception] | tuple[type[Exception], ...], Callable[[], Any]]] = [
    ("broadcast", RuntimeError, lambda: X + torch.ones(2, 4)),
    ("matmul", RuntimeError, lambda: X @ X),
    ("mm of vectors", RuntimeError, lambda: torch.mm(X, torch.ones(3))),
    ("reshape", RuntimeError, lambda: X.reshape(4, 2)),
    ("two unknown sizes", RuntimeError, lambda: X.reshape(-1, -1)),
    ("negative size", RuntimeError, lambda: torch.zeros(-1)),
    ("view of a transpose", RuntimeError, lambda: X.t().view(6)),
    ("expand", RuntimeError, lambda: X.expand(4, 3)),
    ("permute", RuntimeError, lambda: X.permute(0, 0)),
    ("cat", RuntimeError, lambda: torch.cat([X, torch.ones(2)])),
    ("cat of nothing", (RuntimeError, ValueError), lambda: torch.cat([])),
    ("stack", RuntimeError, lambda: torch.stack([X, torch.ones(2, 2)])),
    ("ragged", ValueError, lambda: torch.tensor([[1, 2], [3]])),
    ("text", (TypeError, ValueError), lambda: torch.tensor("a")),
    ("None as data", (RuntimeError, TypeError), lambda: torch.tensor(None)),
    ("None in data", (RuntimeError, TypeError), lambda: torch.tensor([1, None])),
    ("too wide an int", (RuntimeError, OverflowError, ValueError), lambda: torch.tensor(2**70)),
    ("index", IndexError, lambda: X[2]),
    ("negative index", IndexError, lambda: X[-3]),
    ("too many indices", IndexError, lambda: X[0, 0, 0]),
    ("float index", (IndexError, TypeError), lambda: X[1.0]),
    ("text index", (IndexError, TypeError), lambda: X["a"]),
    ("negative step", ValueError, lambda: X[::-1]),
    ("mask of another shape", IndexError, lambda: X[torch.ones(3, dtype=torch.bool)]),
    ("float tensor index", IndexError, lambda: X[torch.ones(1)]),
    ("tensor index", IndexError, lambda: X[torch.tensor([5])]),
    ("index of a 0-d tensor", IndexError, lambda: torch.tensor(1)[0]),
    ("dim", IndexError, lambda: X.sum(2)),
    ("dim twice", RuntimeError, lambda: X.sum((0, 0))),
    ("select", IndexError, lambda: X.select(0, 9)),
    ("gather", RuntimeError, lambda: X.gather(0, torch.tensor([[7]]))),
    ("gather by floats", (RuntimeError, TypeError), lambda: X.gather(0, X)),
    ("max of nothing", (RuntimeError, IndexError), lambda: torch.empty(0).max()),
    ("argmax of nothing", IndexError, lambda: torch.empty(0).argmax()),
    ("topk", RuntimeError, lambda: X.topk(9)),
    ("None", TypeError, lambda: X + None),
    ("None as size", TypeError, lambda: torch.zeros(None)),
    ("None as tensor", TypeError, lambda: torch.cat([X, None])),
    ("remainder by zero", RuntimeError, lambda: torch.tensor(1) % torch.tensor(0)),
    ("floor division by zero", RuntimeError, lambda: torch.tensor(1) // torch.tensor(0)),
    ("int to negative power", RuntimeError, lambda: torch.tensor(2) ** -1),
    ("bitwise floats", (RuntimeError, TypeError), lambda: X & X),
    ("minus of bools", RuntimeError, lambda: -torch.ones(1, dtype=torch.bool)),
    ("sub of bools", RuntimeError, lambda: torch.ones(1).bool() - torch.ones(1).bool()),
    ("float into int", RuntimeError, lambda: torch.ones(1).long().add_(1.5)),
    ("mean of ints", RuntimeError, lambda: torch.ones(1).long().mean()),
    ("matmul of dtypes", RuntimeError, lambda: X @ torch.ones(3, 1, dtype=torch.float64)),
    ("in-place growth", RuntimeError, lambda: torch.ones(1).add_(torch.ones(3))),
    ("out dtype", RuntimeError, lambda: torch.add(X, X, out=torch.empty(2, 3).long())),
    ("as_strided", RuntimeError, lambda: X.as_strided((9, 9), (9, 9))),
    ("arange", (RuntimeError, ValueError), lambda: torch.arange(0, 5, -1)),
    ("arange step 0", (RuntimeError, ValueError), lambda: torch.arange(0, 5, 0)),
    ("device name", RuntimeError, lambda: torch.device("nonsense")),
    ("attribute", AttributeError, lambda: X.nonsense),
    ("function", AttributeError, lambda: torch.nonsense),
]


@pytest.mark.parametrize(("error", "call"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_refused(error: Any, call: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value)
    assert torch.equal(X, torch.ones(2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(2, device="cuda"),
        lambda: torch.tensor([1], device="cuda:0"),
        lambda: X.to("cuda"),
        lambda: X.cuda(),
    ],
)
def test_other_devices_are_absent(call: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, AssertionError, NotImplementedError), match=r"(?i)cuda"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.empty(2**50),
        lambda: torch.zeros(2**50),
        lambda: torch.empty(2**40, 2**40),
        lambda: torch.ones(2**31, 2**31),
        lambda: torch.ones(1).expand(2**50).clone(),
        lambda: torch.ones(1).repeat(2**50),
        lambda: torch.arange(2**50),
        lambda: torch.eye(2**30),
    ],
)
def test_huge_sizes_are_errors(call: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, torch.OutOfMemoryError)):
        call()
    assert torch.ones(2).sum().item() == 2


def test_overlapping_targets() -> None:
    spread = torch.zeros(1).expand(3)
    for change in (lambda: spread.add_(1), lambda: spread.copy_(torch.ones(3))):
        with pytest.raises(RuntimeError, match="single memory location"):
            change()
    x = torch.arange(4.0)
    with pytest.raises(RuntimeError, match=r"single memory location|overlap"):
        x[1:].mul_(x[:-1])
    assert x.tolist() == [0, 1, 2, 3]
    assert x.mul_(x).tolist() == [0, 1, 4, 9]


# --- data from Python ----------------------------------------------------------------------------


def test_lists_of_numbers_of_one_kind_and_of_mixed_ones() -> None:
    for data, dtype in (
        ([1.5, -2.0], torch.float32),
        ((3, 2**40), torch.int64),
        ([True, False], torch.bool),
        ([[1, 2.5], (True, 0)], torch.float32),
        ([1, True], torch.int64),
        ([0.5, 1j], torch.complex64),
    ):
        x = torch.tensor(data)
        assert x.dtype == dtype
        assert (
            torch.tensor(data, dtype=torch.complex128).tolist() == x.to(torch.complex128).tolist()
        )
    assert torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor([[[7]]]).tolist() == [[[7]]]
    assert torch.tensor([16777217, 1 / 3], dtype=torch.float64).tolist() == [16777217, 1 / 3]


def test_wrong_lists_are_refused_as_before() -> None:
    for data, error, text in (
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1], 2], TypeError, "not a sequence"),
        ([1, [2]], ValueError, "only one element tensors"),
        ([1.0, None], RuntimeError, "Could not infer dtype of NoneType"),
        ([1, 2**70], ValueError, "[Oo]verflow"),
    ):
        with pytest.raises(error, match=text):
            torch.tensor(data)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([1, 300], dtype=torch.uint8)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(endless)


def test_python_number_types_stand_for_dtypes_of_their_own_width() -> None:
    kinds = {
        float: torch.float64,
        complex: torch.complex128,
        int: torch.int64,
        bool: torch.bool,
    }
    for kind, dtype in kinds.items():
        assert torch.zeros(2, dtype=kind).dtype == dtype  # type: ignore[call-overload]
        assert torch.tensor([1], dtype=kind).dtype == dtype  # type: ignore[arg-type]
        assert torch.ones(2).to(kind).dtype == dtype  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="invalid dtype object"):
        torch.set_default_dtype(float)  # type: ignore[arg-type]


def test_determinant_and_inverse_have_their_older_names() -> None:
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    assert torch.det(x).item() == pytest.approx(5)
    assert x.det().item() == pytest.approx(5)
    inverse = torch.inverse(input=x)
    assert torch.allclose(x.inverse(), inverse)
    assert torch.allclose(inverse @ x, torch.eye(2), atol=1e-6)
    out = torch.empty(0)
    assert torch.inverse(x.detach(), out=out) is out
    # The derivative of a determinant is the matrix of cofactors.
    x.det().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]]))


def test_operators_have_no_in_place_names_of_their_own() -> None:
    names = {*dir(torch.Tensor), *dir(torch._C._VariableFunctions)}
    assert not [name for name in names if name.endswith("___")]
    x = torch.tensor([1, 3])
    y = x
    y &= torch.tensor([1, 1])
    y <<= 2
    y |= 1
    y >>= 1
    assert x.tolist() == [2, 2]
    assert y is x


def test_memory_cannot_be_pinned_without_an_accelerator() -> None:
    x = torch.zeros(2)
    assert not x.is_pinned()
    assert not x.untyped_storage().is_pinned()
    for call in (
        x.pin_memory,
        x.untyped_storage().pin_memory,
        lambda: torch.tensor([1.0], pin_memory=True),
        lambda: torch.zeros(2, pin_memory=True),
        lambda: torch.rand(2, pin_memory=True),
        lambda: torch.empty_like(x, pin_memory=True),
        lambda: x.new_ones(2, pin_memory=True),
    ):
        with pytest.raises(RuntimeError, match="accelerator device when none is available"):
            call()


def test_a_whole_number_in_a_tensor_selects_as_an_int_does() -> None:
    x = torch.arange(6).view(2, 3)
    row = x[torch.tensor(1)]
    row[0] = 50
    assert x.tolist() == [[0, 1, 2], [50, 4, 5]]
    assert x[torch.tensor(0), torch.tensor(-1)].item() == 2
    assert x[torch.tensor(True)].shape == (1, 2, 3)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        x[torch.tensor(2)]


def test_a_list_with_an_array_in_it_is_a_tuple_of_indices() -> None:
    np = pytest.importorskip("numpy")
    assert torch.arange(3)[[np.array([2, 0])]].tolist() == [2, 0]


def test_what_is_no_index_and_no_value_is_refused() -> None:
    np = pytest.importorskip("numpy")
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="only integers, slices"):
        x[{}]  # type: ignore[index]
    with pytest.raises(TypeError, match="invalid data type 'bytes'"):
        x[b"x"]  # type: ignore[index]
    with pytest.raises(TypeError, match=r"can't assign a numpy\.ndarray to a torch\.FloatTensor"):
        x[:] = np.ones(3)
    assert x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "question", ["is_floating_point", "is_complex", "is_conj", "is_neg", "is_inference"]
)
def test_questions_about_what_is_no_tensor_are_refused(question: str) -> None:
    ask = getattr(torch, question)
    assert ask(torch.ones(2)) is (question == "is_floating_point")
    with pytest.raises(TypeError, match=rf"{question}\(\): .*must be Tensor, not int"):
        ask(1)


class Whole:
    """A whole number for those who ask."""

    def __index__(self) -> int:
        return 7


def test_sums_of_sizes_are_sizes() -> None:
    size = torch.Size((1, 2))
    for both, expected in (
        (add(size, (3,)), (1, 2, 3)),
        (add((3,), size), (3, 1, 2)),
        (size + size, (1, 2, 1, 2)),
        (add((), size), (1, 2)),
        (add(size, ()), (1, 2)),
        (2 * size, (1, 2, 1, 2)),
        (size * 2, (1, 2, 1, 2)),
        (size * 0, ()),
        (size[::-1], (2, 1)),
        (sum([size, size], ()), (1, 2, 1, 2)),
        (add(size, (Whole(), True)), (1, 2, 7, 1)),
        (add((torch.tensor(4),), size), (4, 1, 2)),
    ):
        assert type(both) is torch.Size
        assert both == expected
        assert all(type(item) is int for item in both)
    size = iadd(size, (3,))
    assert repr(size) == "torch.Size([1, 2, 3])"
    assert repr(torch.Size((True,))) == "torch.Size([1])"
    assert size.__radd__((0,)) == (0, 1, 2, 3)


def test_sizes_are_added_to_tuples_of_whole_numbers_only() -> None:
    size = torch.Size((1, 2))
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        add(size, [3])
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not int\) to torch.Size"):
        add(size, 3)
    with pytest.raises(TypeError, match=r'can only concatenate list \(not "torch.Size"\) to list'):
        add([3], size)
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 2 is 'str'\)"):
        add(size, ("a",))
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 0 is 'float'\)"):
        add((1.5,), size)
    assert size.__add__(3) is NotImplemented
    assert size == (1, 2)
