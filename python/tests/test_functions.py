"""Functions that sort their arguments in Python, and the namespaces beside the main one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import _C


def test_tensors_may_come_one_by_one_or_in_a_list() -> None:
    a, b = torch.arange(3), torch.arange(2)
    for grid in (torch.meshgrid(a, b, indexing="xy"), torch.meshgrid([a, b], indexing="xy")):
        for ours, theirs in zip(grid, np.meshgrid(a.numpy(), b.numpy()), strict=True):
            assert ours.tolist() == theirs.tolist()
    for pair in (
        torch.broadcast_tensors(a[:, None], b),
        torch.broadcast_tensors((a[:, None], b)),
    ):
        assert [t.shape for t in pair] == [(3, 2), (3, 2)]
    with pytest.raises(RuntimeError, match="must match"):
        torch.broadcast_tensors(a, b)


def test_einsum_takes_operands_lists_of_them_and_dimension_numbers() -> None:
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    expected = (a @ b).tolist()
    assert torch.einsum("ij,jk->ik", a, b).tolist() == expected
    assert torch.einsum("ij,jk->ik", [a, b]).tolist() == expected
    assert torch.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == expected
    assert torch.einsum(a, [..., 1], b, [1, 2]).tolist() == expected
    assert torch.einsum("ii", torch.eye(3)).item() == 3
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("ij")
    with pytest.raises(ValueError, match="valid range"):
        torch.einsum(a, [0, 52])


def test_nonzero_and_where_give_one_vector_per_dimension() -> None:
    x = torch.tensor([[0, 2], [3, 0]])
    expected = [part.tolist() for part in np.nonzero(x.numpy())]
    for parts in (
        torch.nonzero(x, as_tuple=True),
        x.nonzero(as_tuple=True),
        torch.where(x != 0),
    ):
        assert [part.tolist() for part in parts] == expected
    assert x.nonzero().tolist() == torch.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert x[torch.where(x > 0)].tolist() == [2, 3]
    out = torch.empty(0, dtype=torch.int64)
    assert torch.nonzero(x, out=out) is out
    assert out.tolist() == [[0, 1], [1, 0]]


def test_tensordot_takes_a_number_or_two_lists() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(3, 4, 5)
    expected = np.tensordot(a.numpy(), b.numpy(), 2)
    for dims in (2, ([1, 2], [0, 1]), torch.tensor([[1, 2], [0, 1]])):
        np.testing.assert_allclose(torch.tensordot(a, b, dims).numpy(), expected, rtol=1e-5)
    small = torch.full((2, 3, 4), 200, dtype=torch.uint8)
    one = torch.full((1, 3), 2, dtype=torch.uint8)
    sums = torch.tensordot(small, one, ([0, 1], [0, 1]))
    assert sums.dtype == torch.uint8
    assert sums.tolist() == [2 * 3 * 2 * 200 % 256] * 4
    with pytest.raises(RuntimeError, match="dims >= 0"):
        torch.tensordot(a, b, -1)
    with pytest.raises(RuntimeError, match="dims < ndim_a"):
        torch.tensordot(a, b, 4)


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_unique_consecutive_gives_what_is_asked_for(dim: int | None) -> None:
    x = torch.tensor([[1, 1, 2], [1, 1, 2], [3, 1, 2]])
    runs = {
        None: ([1, 2, 1, 2, 3, 1, 2], [[0, 0, 1], [2, 2, 3], [4, 5, 6]], [2, 1, 2, 1, 1, 1, 1]),
        0: ([[1, 1, 2], [3, 1, 2]], [0, 0, 1], [2, 1]),
        -1: ([[1, 1, 2], [1, 1, 2], [3, 1, 2]], [0, 1, 2], [1, 1, 1]),
    }
    values, inverse, counts = runs[dim]
    for call in (torch.unique_consecutive, torch.Tensor.unique_consecutive):
        assert call(x, dim=dim).tolist() == values
        both = call(x, return_counts=True, dim=dim)
        assert isinstance(both, tuple)
        assert [t.tolist() for t in both] == [values, counts]
        assert [t.tolist() for t in call(x, True, True, dim)] == [values, inverse, counts]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_atleast_takes_a_tensor_several_or_a_list(n: int) -> None:
    function = getattr(torch, f"atleast_{n}d")
    numpys = getattr(np, f"atleast_{n}d")
    tensors = [torch.tensor(1.0), torch.ones(2), torch.ones(2, 3), torch.ones(1, 2, 3, 1)]
    expected = [numpys(t.numpy()).shape for t in tensors]
    assert [function(t).shape for t in tensors] == expected
    for result in (function(*tensors), function(tensors), function(tuple(tensors))):
        assert isinstance(result, tuple)
        assert [t.shape for t in result] == expected
    assert function([]) == function() == ()
    with pytest.raises(TypeError, match="got int"):
        function([1])


def test_methods_take_self_in_its_place() -> None:
    x = torch.tensor([1.0, -2.0, 3.0])
    assert x.where(x > 0, -x).tolist() == [1, 2, 3]
    assert x.where(condition=x > 0, other=0).tolist() == [1, 0, 3]
    with pytest.raises(TypeError, match=r"\(Tensor condition, Number other\)"):
        x.where(x > 0)
    assert not hasattr(torch.Tensor, "threshold_backward")
    y = torch.tensor([1.0, 2.0], dtype=torch.float64)
    expected = torch.polygamma(1, y).tolist()
    assert y.polygamma(1).tolist() == expected
    grad = torch.polygamma(2, y).tolist()
    y.requires_grad_()
    z = y * 1
    assert z.polygamma_(1) is z
    assert z.tolist() == expected
    z.sum().backward()
    assert y.grad.tolist() == grad
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.ones(2, dtype=torch.int64).polygamma_(1)


def test_a_tensor_of_one_number_fills() -> None:
    value = torch.tensor(2.0, requires_grad=True)
    x = torch.ones(3, requires_grad=True) * 1
    assert x[1:].fill_(value).tolist() == [2, 2]
    x.sum().backward()
    assert value.grad.item() == 2
    x = torch.ones(3, requires_grad=True)
    for overwrite in (torch.Tensor.zero_, lambda t: t.fill_(1), lambda t: t.fill_(value)):
        assert torch.autograd.grad(overwrite(x * 2).sum(), x)[0].tolist() == [0, 0, 0]
    value.grad = None
    torch.index_fill(x, 0, torch.tensor([1, 1, 2]), value).sum().backward()
    assert value.grad.item() == 2
    assert torch.zeros(2, dtype=torch.int64).fill_(torch.tensor(2.5)).tolist() == [2, 2]
    for like in (
        torch.full((2,), torch.tensor(3.0)),
        torch.full_like(torch.zeros(2), torch.tensor(3)),
        torch.zeros(2).new_full((2,), torch.tensor(3.0)),
        torch.randint_like(torch.zeros(2), torch.tensor(3), torch.tensor(4)),
    ):
        assert like.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="got tensor with 1 dimensions"):
        torch.zeros(2).fill_(torch.ones(1))
    with pytest.raises(TypeError, match="must be Number, not Tensor"):
        torch.full((2,), value)


@pytest.mark.parametrize(
    ("p", "dim", "order"),
    [
        ("fro", None, None),
        ("fro", 1, 2),
        ("fro", (0, 1), None),
        ("nuc", (0, 1), "nuc"),
        ("nuc", None, "nuc"),
        (None, None, 2),
        (2, None, 2),
        (3, 0, 3),
    ],
)
def test_norm_knows_orders_by_name(p: Any, dim: Any, order: Any) -> None:
    x = torch.tensor([[1.0, -2.0, 2.0], [0.5, 3.0, -1.0]], dtype=torch.float64)
    given = x.numpy() if dim is not None or order == "nuc" else x.numpy().reshape(-1)
    axis = None if dim is None else dim
    for keepdim in (False, True):
        expected = np.linalg.norm(given, order, axis, keepdims=keepdim)
        for result in (torch.norm(x, p, dim, keepdim), x.norm(p=p, dim=dim, keepdim=keepdim)):
            np.testing.assert_allclose(result.reshape(-1).numpy(), np.ravel(expected), rtol=1e-12)
            assert result.dim() == (2 if keepdim else np.ndim(expected))
    out = torch.empty(0, dtype=torch.float64)
    assert torch.norm(x, p, dim, out=out) is out
    assert torch.norm(x.float(), p, dim, dtype=torch.float64).dtype == torch.float64


def test_norm_refuses_names_it_does_not_know() -> None:
    for x, p, dim, text in (
        (torch.ones(2, 2), "foo", None, "Order foo not supported"),
        (torch.ones(2, 2), "nuc", 0, "dim must be a 2-tuple. Got 0"),
        (torch.ones(2, 2, 2), "fro", (0, 1, 2), "dim must be a 2-tuple. Got 0 1 2"),
    ):
        with pytest.raises(RuntimeError, match=text):
            torch.norm(x, p, dim)
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(x.norm(0), x, allow_unused=True) == (None,)


def test_results_go_where_out_says() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    steps = torch.tensor([1.0, 2.0, 3.0])
    for function, args in (
        (torch.mean, (x,)),
        (torch.searchsorted, (steps, x)),
        (torch.bucketize, (x, steps)),
        (torch.linalg.eigvalsh, (x,)),
        (torch.linalg.svdvals, (x,)),
    ):
        expected = function(*args)
        out = torch.empty(0, dtype=expected.dtype)
        assert function(*args, out=out) is out
        assert out.tolist() == expected.tolist()


def test_tensors_say_where_to_split() -> None:
    x = torch.arange(10).reshape(5, 2)
    for points, plain in ((torch.tensor(3), 3), (torch.tensor([1, 4]), (1, 4))):
        expected = [t.tolist() for t in torch.tensor_split(x, plain)]
        assert [t.tolist() for t in x.tensor_split(points)] == expected
        assert [t.tolist() for t in torch.tensor_split(x, points, dim=0)] == expected


def test_a_tensor_of_one_element_says_how_long_pieces_are() -> None:
    x = torch.arange(5)
    for size in (torch.tensor(2), torch.tensor([2]), torch.tensor([[2.0]])):
        assert [t.tolist() for t in x.split(size)] == [[0, 1], [2, 3], [4]]
        assert [t.tolist() for t in torch.split(x, size, 0)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError, match="must be tuple of ints, not Tensor"):
        x.split(torch.tensor([2, 3]))


def test_none_stands_for_a_default_of_no_elements() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.amax(x, dim=None).item() == x.amax(None).item() == x.amax(()).item() == 5
    assert x.amin(None, True).tolist() == [[0.0]]
    assert torch.roll(x, 1, None).tolist() == [[5, 0, 1], [2, 3, 4]]


def test_fill_makes_a_new_tensor() -> None:
    x = torch.zeros(3, 2).t().requires_grad_()
    value = torch.tensor(2.0, requires_grad=True)
    for result, name in (
        (torch.fill(x, 2), "FillBackward0"),
        (torch.fill(x, value), "FillBackward1"),
    ):
        assert result.tolist() == [[2, 2, 2], [2, 2, 2]]
        assert result.stride() == (1, 2)
        assert type(result.grad_fn).__name__ == name
    by_x, by_value = torch.autograd.grad(result.sum(), [x, value])
    assert by_x.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert by_value.item() == 6
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="0-dimension value tensor but got tensor with 1"):
        torch.fill(x, torch.ones(1))


def test_an_element_of_the_tensor_itself_fills_slices() -> None:
    x = torch.arange(4.0)
    x.index_fill_(0, torch.tensor([0, 3]), x[3])
    assert x.tolist() == [3, 1, 2, 3]
    places = torch.arange(4)
    with pytest.raises(RuntimeError, match="single memory location"):
        places.index_fill_(0, places[1:3], places[3])


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_bounds_may_stand_in_tensors(name: str) -> None:
    function = getattr(torch, name)
    ends = [torch.tensor(1.0, requires_grad=True), torch.tensor(3)]
    for start, end in (
        ends,
        (ends[0], 3),
        (1, ends[1]),
        (1, torch.tensor(3.0, requires_grad=True)),
    ):
        result = function(start, end, 5)
        assert result.tolist() == function(1, 3, 5).tolist()
        assert not result.requires_grad
        out = torch.zeros(5, dtype=torch.float64)
        assert function(start, end, 5, out=out) is out
    assert function(torch.tensor(1j), 2, 3).dtype is torch.complex64
    long = torch.ones(1)
    for bounds, said in (
        ((long, 2), "start with 1"),
        ((1, long), "end with 1"),
        ((torch.ones(()), long), r"start with 0 dimension\(s\) and end with 1"),
    ):
        with pytest.raises(RuntimeError, match=f"only supports 0-dimensional .* got {said}"):
            function(*bounds, 3)


def test_places_count_from_the_end() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    places = torch.tensor([[-1, 0], [-3, 2]])
    picked = torch.take_along_dim(x, places, 1)
    assert picked.tolist() == [[3, 1], [4, 6]]
    picked.sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [1, 0, 1]]
    assert torch.take_along_dim(x.t(), torch.tensor([-1, 1])).tolist() == [6, 4]
    # Along a dimension they go round, as PyTorch's; in the flattened tensor they do not.
    around = torch.take_along_dim(x, torch.tensor([[-4, 3], [7, 0]]), 1)
    assert around.tolist() == [[3, 1], [5, 4]]
    for bad in (-7, 6):
        with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 6"):
            torch.take_along_dim(x, torch.tensor([bad]))


def test_indices_without_elements_may_be_of_any_dtype() -> None:
    x = torch.ones(2, 3)
    none = torch.zeros(0, 3, dtype=torch.uint8)
    assert torch.gather(x, 0, none).shape == (0, 3)
    assert torch.scatter(x, 0, none, 2.0).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
        torch.gather(x, 0, torch.zeros(1, 3, dtype=torch.uint8))


def test_masked_scatter_broadcasts_self_and_mask() -> None:
    x = torch.zeros(3, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    source = torch.arange(1.0, 5.0, requires_grad=True)
    result = torch.masked_scatter(x, mask, source)
    assert result.tolist() == [[1, 0, 2], [0, 3, 0]]
    result.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert source.grad.tolist() == [1, 1, 1, 0]
    target = torch.zeros(3)
    with pytest.raises(
        RuntimeError, match=r"input tensor size \[3\] and output tensor size \[2, 3\]"
    ):
        target.masked_scatter_(mask, source.detach())
    assert target.tolist() == [0, 0, 0]


def test_linspace_of_integers_loses_fractions_last() -> None:
    # The sum is cut off, not the step's multiple.
    assert torch.linspace(-2, -3, 5, dtype=torch.int64).tolist() == [-2, -2, -2, -2, -3]
    assert torch.linspace(5, -5, 4, dtype=torch.int64).tolist() == [5, 1, -1, -5]
    large = torch.linspace(0, 3 * 16777217, 4, dtype=torch.int64)
    assert large.tolist() == [0, 16777217, 33554434, 50331651]
    assert torch.logspace(0, 4, 9, dtype=torch.int64)[3].item() == 31


@pytest.mark.parametrize(
    ("name", "field", "text"),
    [
        ("linalg.inv", "inverse", "The diagonal element 2 is zero"),
        ("torch.linalg.solve", "result", "The solver failed because the input matrix is singular"),
        ("linalg.cholesky", "L", "the leading minor of order 2 is not positive-definite"),
    ],
)
def test_the_forms_with_codes_say_which_matrices_fail(name: str, field: str, text: str) -> None:
    a = torch.tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]]])
    short = name.rpartition(".")[2]
    args = (a, torch.ones(2, 2, 1)) if short == "solve" else (a,)
    plain, with_code = getattr(torch.linalg, short), getattr(torch.linalg, short + "_ex")
    found = with_code(*args)
    assert type(found).__name__ == f"linalg_{short}_ex"
    assert found.info.dtype == torch.int32
    assert found.info.tolist() == [0, 2]
    result = getattr(found, field)
    assert result[0].tolist() == plain(*(t[0] for t in args)).tolist()
    assert result[1].isnan().all()
    with pytest.raises(torch.linalg.LinAlgError, match=f"^{name}: .Batch element 1.: .*{text}"):
        plain(*args)
    with pytest.raises(torch.linalg.LinAlgError, match=f"^{name}_ex: .Batch element 1.: .*{text}"):
        with_code(*args, check_errors=True)
    leaf = a[0].requires_grad_()
    code = with_code(leaf, *args[1:])
    assert not code.info.requires_grad
    assert code[0].grad_fn.name() == f"Linalg{short.capitalize()}ExBackward0"


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_slogdet_is_the_determinant_in_two_parts(dtype: Any) -> None:
    torch.manual_seed(0)
    a = torch.randn(2, 3, 3, dtype=dtype)
    sign, log = torch.linalg.slogdet(a)
    assert torch.allclose(sign * log.exp(), torch.linalg.det(a))
    assert [t.tolist() for t in a.slogdet()] == [sign.tolist(), log.tolist()]
    sign, log = torch.slogdet(torch.zeros(2, 2, dtype=dtype))
    assert sign.item() == 0
    assert log.item() == -torch.inf
    large = torch.eye(200, dtype=dtype) * 1e10
    assert torch.linalg.slogdet(large).logabsdet.item() == pytest.approx(2000 * np.log(10))
    assert torch.linalg.slogdet(torch.zeros(0, 0, dtype=dtype)).sign.item() == 1


def test_linalg_has_every_op_of_its_family() -> None:
    ops = {name.removeprefix("linalg_") for name in dir(_C._linalg) if name[0] != "_"}
    assert ops == set(torch.linalg.__all__) - {"LinAlgError"}
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    u, s, vh = torch.linalg.svd(a)
    assert torch.allclose((u * s) @ vh, a)
    assert torch.allclose(a @ torch.linalg.solve(a, torch.ones(2)), torch.ones(2))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2))


def test_cuda_says_that_it_is_not_there() -> None:
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    torch.cuda.manual_seed_all(1)
    with pytest.raises(RuntimeError, match="no cuda backend"):
        torch.cuda.current_device()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda c, x: torch.maximum(c, torch.ones(0)),
            TypeError,
            "maximum not implemented for",
        ),
        (lambda c, x: torch.fmax(c, x), TypeError, "fmax not implemented for complex"),
        (lambda c, x: torch.fmin(x, c), TypeError, "fmin not implemented for complex"),
        (lambda c, x: torch.argmax(c), TypeError, "argmax.*does not support complex input"),
        (lambda c, x: torch.argmin(c), TypeError, "argmin.*does not support complex input"),
        (lambda c, x: torch.aminmax(c), TypeError, "aminmax not implemented for ComplexFloat"),
        (lambda c, x: torch.deg2rad(c), NotImplementedError, "deg2rad is not supported for comp"),
        (lambda c, x: c.rad2deg_(), NotImplementedError, "rad2deg is not supported for complex"),
        (lambda c, x: c.abs_(), RuntimeError, "In-place abs is not supported for complex"),
        (lambda c, x: F.elu(x, 2j), RuntimeError, "to type float without overflow"),
        (lambda c, x: _C._nn.hardtanh(x, 2j, 3), RuntimeError, "without overflow"),
        (lambda c, x: F.leaky_relu_(x, 2j), RuntimeError, "without overflow"),
        (lambda c, x: F.softplus(x, 2j), RuntimeError, "without overflow"),
        (lambda c, x: torch.linalg.vector_norm(c, 2j), RuntimeError, "non-complex scalar as the o"),
        (lambda c, x: x.sub(True), NotImplementedError, "with a bool tensor is not supported"),
        (lambda c, x: x.sub_(True), NotImplementedError, "with a bool tensor is not supported"),
        (lambda c, x: torch.kl_div(x.long(), x), RuntimeError, "Integral inputs not"),
        (lambda c, x: x.__setitem__(0, 1j), RuntimeError, "type float without overflow"),
        (
            lambda c, x: x.to(torch.int8).__setitem__(0, 300),
            RuntimeError,
            "int8_t without over",
        ),
        (
            lambda c, x: torch.group_norm(torch.ones(1, 0, 3), 1),
            RuntimeError,
            "channels to be gre",
        ),
    ],
)
def test_numbers_and_dtypes_without_a_meaning_are_refused(
    call: Callable[..., Any], error: type[Exception], text: str
) -> None:
    c, x = torch.ones(3, dtype=torch.complex64), torch.ones(3)
    with pytest.raises(error, match=text):
        call(c, x)
    assert c.tolist() == [1, 1, 1]
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: F.adaptive_avg_pool1d(x, ()), "'output_size' should contain one int .got 0"),
        (lambda x: F.adaptive_avg_pool1d(x, (1, 2)), "'output_size' should contain one int .got 2"),
        (lambda x: F.adaptive_avg_pool2d(x, ()), "output_size must be 2"),
        (lambda x: F.avg_pool1d(x, (1, 2)), "'kernel_size' should contain one int .got 2"),
        (
            lambda x: F.max_pool1d(x, 2, (1, 2)),
            "stride must be .* of size 1 but got size 2",
        ),
        (lambda x: F.max_pool1d(x[0, 0], 2), r"max_pool1d: Expected 2D or 3D .* got:\[4\]"),
        (lambda x: F.max_pool1d(x[:, :0], 2), r"max_pool1d: Expected 2D or 3D .* got:\[1, 0, 4\]"),
        (lambda x: F.max_pool2d(x[:0], 2), r"Expected 3D or 4D .* got:\[0, 2, 4\]"),
        (lambda x: F.max_pool1d(x, 2, padding=-1), "padding must be non-negative, but got -1"),
    ],
)
def test_windows_that_cannot_be_are_refused(call: Callable[..., Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(torch.ones(1, 2, 4))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("amax", (0,)),
        ("aminmax", ()),
        ("gather", (0, torch.zeros(1, 3, dtype=torch.int64))),
        ("index_select", (0, torch.tensor([0]))),
        ("mm", (torch.ones(3, 2),)),
        ("sort", ()),
        ("tril", ()),
        ("complex", (torch.ones(2, 3),)),
    ],
)
def test_an_output_of_another_dtype_is_refused_where_nothing_is_converted(
    name: str, args: tuple[Any, ...]
) -> None:
    x = torch.ones(2, 3)
    result = getattr(torch, name)(x, *args)
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    wide = torch.complex128 if results[0].is_complex() else torch.float64
    results[0] = results[0].to(wide).zero_()
    out = results[0] if isinstance(result, torch.Tensor) else tuple(results)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        getattr(torch, name)(x, *args, out=out)
    assert not results[0].any()
    assert torch.sum(x, 0, out=torch.empty(3, dtype=torch.float64)).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (float("nan"), torch.int64),
        (float("inf"), torch.int32),
        (1e30, torch.uint8),
        (300.5, torch.int8),
        (1j, torch.int8),
        (1j, torch.float32),
    ],
)
def test_a_tensor_of_numbers_that_its_dtype_has_not_is_refused(number: Any, dtype: Any) -> None:
    place = torch.zeros(1, dtype=dtype)
    for make in [
        lambda: torch.tensor(number, dtype=dtype),
        lambda: torch.tensor([0, number], dtype=dtype),
        lambda: place.new_tensor([number]),
        lambda: place.__setitem__(0, number),
        lambda: place.__setitem__([0], number),
        lambda: place.fill_(number),
    ]:
        with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without"):
            make()
    assert place.tolist() == [0]


def test_numbers_beyond_half_precision_are_infinite_elements() -> None:
    x = torch.zeros(2, dtype=torch.float16)
    x[0] = 1e30
    assert x.tolist() == [float("inf"), 0.0]
    assert torch.tensor([1j, 0], dtype=torch.bool).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="type float without overflow"):
        torch.zeros(1)[0] = 1e300
    with pytest.raises(RuntimeError, match="type double without overflow"):
        torch.arange(2j)
    with pytest.raises(NotImplementedError, match="clamp is not supported for complex types"):
        torch.ones(1, dtype=torch.complex64).clamp(torch.ones(2))


def test_ravel_type_as_and_is_nonzero() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert x.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert x.ravel().data_ptr() == x.data_ptr()
    assert torch.ravel(x.t()).tolist() == [0, 3, 1, 4, 2, 5]
    assert x.type_as(x) is x
    y = x.requires_grad_().type_as(torch.zeros((), dtype=torch.float64))
    assert y.dtype == torch.float64
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.float32
    assert torch.is_nonzero(torch.tensor([[-2j]]))
    assert not torch.tensor(False).is_nonzero()
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        x.is_nonzero()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: torch.std(torch.ones(1)), "degrees of freedom"),
        (lambda: torch.std(torch.ones(100_000, 1), 1), "degrees of freedom"),
        (lambda: torch.ones(1).std(), "degrees of freedom"),
        (lambda: torch.add(torch.ones(2), 1, out=torch.ones(3)), "was resized"),
    ],
)
def test_warnings_that_a_filter_makes_errors_are_raised(call, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match=said):
                call()
    assert torch.ones(2).sum().item() == 2
