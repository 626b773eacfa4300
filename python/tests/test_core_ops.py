"""Ops of the core family: values beside NumPy's, conventions, classes of errors, names of results.

The property tests of the registry check shapes, strides, derivatives and batches; here is what
they cannot know.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import linalg

RESIZED = "An output with one or more elements was resized"


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def close(tensor: torch.Tensor, expected: object, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


# Copies of views


COPIES = [
    ("alias_copy", (), "AliasBackward0_copy", lambda a: a),
    ("as_strided_copy", ((3,), (2,), 1), "AsStridedBackward0_copy", lambda a: a.ravel()[1:6:2]),
    ("diagonal_copy", (1,), "DiagonalBackward0_copy", lambda a: np.diagonal(a, 1)),
    ("expand_copy", ((2, 3, 4),), "ExpandBackward0_copy", lambda a: np.stack([a, a])),
    ("narrow_copy", (1, -3, 2), "NarrowCopyBackward0", lambda a: a[:, 1:3]),
    ("permute_copy", ((1, 0),), "PermuteBackward0_copy", np.transpose),
    ("select_copy", (0, -1), "SelectBackward0_copy", lambda a: a[-1]),
    ("slice_copy", (1, 1, 4, 2), "SliceBackward0_copy", lambda a: a[:, 1:4:2]),
    ("squeeze_copy", (), "SqueezeBackward0_copy", lambda a: a),
    ("squeeze_copy", (0,), "SqueezeBackward1_copy", lambda a: a),
    ("squeeze_copy", ((0, 1),), "SqueezeBackward2_copy", lambda a: a),
    ("t_copy", (), "TBackward0_copy", np.transpose),
    ("transpose_copy", (0, -1), "TransposeBackward0_copy", np.transpose),
    ("unfold_copy", (0, 2, 1), "UnfoldBackward0_copy", lambda a: np.stack([a[:2].T, a[1:].T])),
    ("unsqueeze_copy", (1,), "UnsqueezeBackward0_copy", lambda a: a[:, None]),
    ("view_copy", ((4, -1),), "ViewBackward0_copy", lambda a: a.reshape(4, 3)),
]


@pytest.mark.parametrize(("name", "args", "node", "twin"), COPIES)
def test_copies_of_views_have_memory_of_their_own(name, args, node, twin) -> None:
    array = values(1, 3, 4)
    x = torch.tensor(array, requires_grad=True)
    copy = getattr(torch, name)(x, *args)
    assert copy.grad_fn.name() == node
    assert copy.is_contiguous()
    assert copy._base is None
    close(copy.detach(), twin(array))
    with torch.no_grad():
        copy.zero_()
    close(x.detach(), array)
    assert hasattr(torch.Tensor, name) == (name == "narrow_copy")


def test_copies_of_pieces_are_lists_and_fill_lists() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    calls = [(torch.split_copy, 2, 2), (torch.split_with_sizes_copy, [1, 2], 2)]
    for function, argument, count in calls:
        pieces = function(x, argument)
        assert isinstance(pieces, tuple)
        assert len(pieces) == count
        out = [torch.empty(0) for _ in range(count)]
        assert function(x, argument, out=out) is None
        assert all(a.equal(b) for a, b in zip(out, pieces, strict=True))
    with pytest.raises(RuntimeError, match="expected an out= argument of size 3, got size 1"):
        torch.unbind_copy(x, out=[torch.empty(2)])
    y = torch.tensor(values(2, 3, 2), requires_grad=True)
    parts = torch.unbind_copy(y)
    assert parts[0].grad_fn.name() == "UnbindBackward0_copy"
    (parts[0] * 2 + parts[2]).sum().backward()
    assert y.grad.tolist() == [[2, 2], [0, 0], [1, 1]]


def test_view_copy_takes_strides_that_view_refuses_and_dtypes() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.view(6)
    assert torch.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    ones = torch.view_copy(torch.ones(2), torch.int32)
    assert ones.dtype == torch.int32
    assert ones.tolist() == [0x3F800000] * 2
    pairs = torch.view_as_real_copy(torch.tensor([1 + 2j]))
    assert pairs.tolist() == [[1.0, 2.0]]
    assert torch.view_as_complex_copy(pairs).tolist() == [1 + 2j]
    assert not torch.detach_copy(torch.ones(2, requires_grad=True)).requires_grad


def test_copies_write_only_into_their_own_dtype() -> None:
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.view_copy(x, (6,), out=torch.empty(6, dtype=torch.double))
    with pytest.warns(UserWarning, match=RESIZED):
        out = torch.view_copy(x, (2, 3), out=torch.empty(5))
    assert out.shape == (2, 3)


# Writes into copies


def test_scatter_into_views_gives_each_input_its_part_of_the_gradient() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    src = torch.tensor([10.0, 20.0, 30.0], requires_grad=True)
    result = x.select_scatter(src, 0, 1)
    assert result.tolist() == [[0, 1, 2], [10, 20, 30]]
    assert x[1, 0] == 3
    result.backward(torch.arange(1.0, 7.0).reshape(2, 3))
    assert x.grad.tolist() == [[1, 2, 3], [0, 0, 0]]
    assert src.grad.tolist() == [4, 5, 6]
    assert result.grad_fn.name() == "SelectScatterBackward0"
    zeros = torch.zeros(3, 3)
    assert zeros.diagonal_scatter(torch.ones(2), 1).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert zeros.slice_scatter(torch.ones(3, 2), 1, 0, 3, 2).sum(0).tolist() == [3, 0, 3]


def test_scatter_converts_its_source_and_keeps_the_order_of_memory() -> None:
    x = torch.zeros(2, 3).t()
    result = torch.select_scatter(x, torch.ones(2, dtype=torch.double), 0, 1)
    assert result.dtype == torch.float32
    assert result.stride() == (1, 3)


def test_as_strided_scatter_counts_in_the_storage() -> None:
    x = torch.arange(10.0)[2:8]
    hundred = torch.tensor([100.0])
    assert torch.as_strided_scatter(x, hundred, (1,), (1,)).tolist() == [100, 3, 4, 5, 6, 7]
    assert torch.as_strided_scatter(x, hundred, (1,), (1,), 3).tolist() == [2, 100, 4, 5, 6, 7]
    assert torch.as_strided_scatter(x, hundred, (1,), (1,), 0).tolist() == [2, 3, 4, 5, 6, 7]
    columns = torch.arange(6.0).reshape(2, 3).t()
    written = torch.as_strided_scatter(columns, hundred, (1,), (1,), 1)
    assert written.tolist() == [[0, 3], [100, 4], [2, 5]]
    assert written.stride() == (1, 3)


def test_as_strided_scatter_has_right_gradients_in_any_order_of_memory() -> None:
    def write(x: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
        return torch.as_strided_scatter(x.t(), src, (2,), (2,), 1)

    x = torch.tensor(values(2, 3, 2), requires_grad=True)
    src = torch.tensor(values(3, 2), requires_grad=True)
    assert torch.autograd.gradcheck(write, (x, src))
    assert torch.autograd.gradgradcheck(write, (x, src))


def test_as_strided_scatter_gives_no_gradient_to_what_was_overwritten() -> None:
    x = torch.arange(6.0, requires_grad=True)
    src = torch.tensor([[10.0, 20.0], [30.0, 40.0]], requires_grad=True)
    result = torch.as_strided_scatter(x, src, (2, 2), (1, 1), 1)
    assert result.tolist() == [0, 10, 30, 40, 4, 5]
    result.backward(torch.arange(1.0, 7.0))
    assert x.grad.tolist() == [1, 0, 0, 0, 5, 6]
    assert src.grad.tolist() == [[2, 0], [3, 4]]


# Matrices


def test_diagonals_are_numpys() -> None:
    vector, matrix = values(3, 3), values(4, 3, 4)
    for offset in (-2, -1, 0, 1, 3, 5):
        close(torch.diag(torch.tensor(vector), offset), np.diag(vector, offset))
        close(torch.diag(torch.tensor(matrix), offset), np.diag(matrix, offset))
        close(torch.diagflat(torch.tensor(matrix), offset), np.diagflat(matrix, offset))
    close(torch.trace(torch.tensor(matrix)), np.trace(matrix))
    assert torch.trace(torch.ones(2, 2, dtype=torch.int32)).dtype == torch.int64
    batch = torch.tensor(values(5, 2, 3, 4))
    assert linalg.diagonal(batch, offset=1).equal(batch.diagonal(1, 1, 2))
    embedded = torch.diag_embed(torch.ones(2, 3), 1, 0, 2)
    assert embedded.shape == (4, 2, 4)
    assert embedded.diagonal(1, 0, 2).equal(torch.ones(2, 3))


def test_products_are_numpys() -> None:
    a, b = values(6, 4, 3), values(7, 4, 3)
    x, y = torch.tensor(a), torch.tensor(b)
    close(torch.cross(x, y, dim=1), np.cross(a, b))
    close(linalg.cross(x, y[:1]), np.cross(a, b[:1]))
    close(x.t().cross(y.t(), 0), np.cross(a, b).T)
    close(linalg.vecdot(x, y), (a * b).sum(1))
    close(torch.kron(x, y[0]), np.kron(a, b[0]))
    close(x[0].kron(y), np.kron(a[0], b))
    close(torch.vander(x[0]), np.vander(a[0]))
    close(torch.vander(x[0], 5, True), np.vander(a[0], 5, increasing=True))
    close(linalg.vander(x, N=4)[2], np.vander(a[2], 4, increasing=True))
    close(torch.addr(x, x[:, 0], y[0], beta=0.5, alpha=2), 0.5 * a + 2 * np.outer(a[:, 0], b[0]))
    assert linalg.vecdot(torch.tensor([1j]), torch.tensor([1 + 0j])).item() == -1j


def test_cross_without_dim_takes_the_first_of_size_three_and_warns() -> None:
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="without specifying the dim arg is deprecated"):
            result = torch.cross(torch.eye(3), torch.eye(3).flip(0))
    finally:
        torch.set_warn_always(False)
    assert result.equal(torch.cross(torch.eye(3), torch.eye(3).flip(0), dim=0))


def test_addr_of_bools_and_ignored_bias() -> None:
    yes, no = torch.ones(2, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.bool)
    three = torch.tensor([True, False, True])
    assert torch.addr(no, yes, three).tolist() == [[True, False, True]] * 2
    assert torch.addr(~no, yes, three, beta=False).tolist() == [[True, False, True]] * 2
    assert not torch.addr(no, yes, three, alpha=False).any()
    nan = torch.full((2, 3), math.nan)
    assert torch.addr(nan, torch.ones(2), torch.ones(3), beta=0).equal(torch.ones(2, 3))
    x = torch.ones(2, 3)
    assert x.addr_(torch.ones(2), torch.arange(3.0)) is x
    assert x[0].tolist() == [1, 2, 3]
    assert not hasattr(torch, "addr_")


def test_blocks_products_and_combinations() -> None:
    blocks = torch.block_diag(torch.ones(2, 2), torch.tensor(5), torch.tensor([7.0, 8.0]))
    rows = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 5, 0, 0], [0, 0, 0, 7, 8]]
    assert blocks.tolist() == rows
    assert blocks.dtype == torch.float32
    assert torch.block_diag().shape == (1, 0)
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.cartesian_prod(a, b).tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert torch.cartesian_prod(a) is a or torch.cartesian_prod(a).equal(a)
    assert torch.combinations(torch.tensor([1, 2, 3])).tolist() == [[1, 2], [1, 3], [2, 3]]
    repeated = torch.combinations(torch.tensor([1, 2]), 3, True)
    assert repeated.tolist() == [[1, 1, 1], [1, 1, 2], [1, 2, 2], [2, 2, 2]]
    assert torch.combinations(torch.arange(2), 3).shape == (0, 3)
    assert torch.combinations(torch.arange(2), 0).shape == (0,)
    columns = torch.column_stack((torch.arange(2), torch.ones(2, 2)))
    assert columns.tolist() == [[0, 1, 1], [1, 1, 1]]


def test_shapes_and_coordinates() -> None:
    shape = torch.broadcast_shapes((2, 1), 3, (), None, [1, 1, 1])
    assert shape == (1, 2, 3)
    assert isinstance(shape, torch.Size)
    assert torch.broadcast_shapes((0,), (1,)) == (0,)
    assert torch.broadcast_shapes() == ()
    places = torch.tensor([[1, 5], [7, -1]])
    rows, columns = torch.unravel_index(places, (2, 3))
    assert rows.tolist() == [[0, 1], [0, 1]]
    assert columns.tolist() == [[1, 2], [1, 2]]
    assert torch.unravel_index(torch.tensor(4, dtype=torch.uint8), 6)[0].item() == 4
    assert torch.unravel_index(places, ()) == ()
    x = torch.ones(4, 2, 3)
    assert x.sum_to_size(2, 1).tolist() == [[12], [12]]
    assert x.sum_to_size((4, 2, 3)) is not None
    assert torch.ones(2, 2, dtype=torch.int32).sum_to_size(1).dtype == torch.int64
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)


# Differences and areas


def test_differences_are_numpys() -> None:
    array, edge = values(8, 3, 5), values(9, 3, 2)
    x, y = torch.tensor(array), torch.tensor(edge)
    for n in (1, 2, 4, 5, 9):
        close(torch.diff(x, n), np.diff(array, min(n, 5)))
        close(x.diff(n, 0), np.diff(array, min(n, 3), axis=0))
    close(torch.diff(x, prepend=y, append=y), np.diff(array, prepend=edge, append=edge))
    assert torch.diff(torch.tensor([True, False, False])).tolist() == [True, False]


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradients_are_numpys_in_all_forms(edge_order: int) -> None:
    array = values(10, 5, 4)
    x = torch.tensor(array)
    rows, columns = np.cumsum(np.abs(values(11, 5)) + 0.1), np.arange(4) * 2.0
    forms = [
        ({}, (), None),
        ({"spacing": 0.5}, (0.5,), None),
        ({"spacing": [0.5, 3]}, (0.5, 3), None),
        ({"spacing": (torch.tensor(rows), torch.tensor(columns))}, (rows, columns), None),
        ({"spacing": 2.0, "dim": 1}, (2.0,), 1),
        ({"dim": (1, 0)}, (), (1, 0)),
        ({"spacing": [2.0], "dim": [0]}, (2.0,), (0,)),
        ({"spacing": 2.0, "dim": (1, 0)}, (2.0,), (1, 0)),
        ({"spacing": [torch.tensor(rows)], "dim": 0}, (rows,), 0),
        ({"spacing": [torch.tensor(columns)], "dim": [1]}, (columns,), (1,)),
    ]
    for given, distances, axis in forms:
        expected = np.gradient(array, *distances, axis=axis, edge_order=edge_order)
        expected = [expected] if isinstance(expected, np.ndarray) else expected
        found = torch.gradient(x, **given, edge_order=edge_order)
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            close(f, e, 1e-10)


def test_gradients_of_integers_complex_numbers_and_nothing() -> None:
    assert torch.gradient(torch.arange(4) ** 2)[0].tolist() == [1, 2, 4, 5]
    assert torch.gradient(torch.ones(())) == ()
    assert torch.gradient(torch.ones(4), dim=()) == ()
    along = torch.gradient(torch.arange(4) * 1j, spacing=2j)[0]
    assert along.tolist() == [0.5] * 4
    assert math.copysign(1, torch.gradient(torch.ones(3))[0][-1].item()) == 1


def test_areas_are_numpys() -> None:
    array, points = values(12, 3, 5), np.cumsum(np.abs(values(13, 5)))
    y, x = torch.tensor(array), torch.tensor(points)
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    for function in (torch.trapezoid, torch.trapz):
        close(function(y, x), trapezoid(array, points))
        close(function(y, dx=0.5, dim=0), trapezoid(array, dx=0.5, axis=0))
    steps = np.diff(points) * (array[:, 1:] + array[:, :-1]) / 2
    close(torch.cumulative_trapezoid(y, x), np.cumsum(steps, axis=1))
    sums = np.cumsum((array[1:] + array[:-1]) * 1.5, axis=0)
    close(torch.cumulative_trapezoid(y, dx=3, dim=0), sums)
    assert torch.trapezoid(torch.arange(1, 4)).item() == 4.0
    assert torch.trapezoid(torch.ones(2, 0)).tolist() == [0, 0]


# Statistics


def test_histograms_are_numpys() -> None:
    array, weight = values(14, 200), np.abs(values(15, 200))
    x, w = torch.tensor(array), torch.tensor(weight)
    edges = np.array([-2.0, -0.5, 0.0, 0.1, 1.5])
    for density in (False, True):
        for given, count in [({"weight": w}, weight), ({}, None)]:
            hist, found = torch.histogram(x, 7, density=density, **given)
            expected, at = np.histogram(array, 7, weights=count, density=density)
            close(hist, expected, 1e-10)
            close(found, at)
            hist, found = torch.histogram(x, torch.tensor(edges), density=density, **given)
            close(hist, np.histogram(array, edges, weights=count, density=density)[0], 1e-10)
            assert found.tolist() == edges.tolist()
    hist = torch.histogram(x, bins=5, range=(-1.0, 2.0)).hist
    close(hist, np.histogram(array, 5, (-1, 2))[0])
    close(torch.histc(x, 5, -1, 2), np.histogram(array, 5, (-1, 2))[0])
    close(x.histc(6), np.histogram(array, 6)[0])


def test_histograms_in_grids_are_numpys() -> None:
    array = values(16, 300, 2)
    x = torch.tensor(array)
    for density in (False, True):
        found = torch.histogramdd(x, [4, 3], density=density)
        hist, edges = np.histogramdd(array, [4, 3], density=density)
        assert type(found).__name__ == "histogramdd"
        assert isinstance(found.bin_edges, tuple)
        close(found.hist, hist, 1e-10)
        for ours, theirs in zip(found.bin_edges, edges, strict=True):
            close(ours, theirs)
    sides = (np.array([-1.0, 0.0, 0.5]), np.array([-2.0, 2.0]))
    hist = torch.histogramdd(x, tuple(map(torch.tensor, sides))).hist
    close(hist, np.histogramdd(array, sides)[0])
    limits = [-1.0, 1.0, 0.0, 2.0]
    hist = torch.histogramdd(x, 3, range=limits).hist
    close(hist, np.histogramdd(array, 3, [(-1, 1), (0, 2)])[0])
    assert torch.return_types.histogramdd is type(torch.histogramdd(x, 2))


def test_conventions_of_histograms() -> None:
    result = torch.histogram(torch.ones(2), 4)
    assert type(result) is torch.return_types.histogram
    assert result.bin_edges.tolist() == [0.5, 0.75, 1.0, 1.25, 1.5]
    assert result.hist.tolist() == [0, 0, 2, 0]
    empty = torch.histogram(torch.ones(0), 2, density=True)
    assert empty.bin_edges.tolist() == [0, 0.5, 1]
    assert empty.hist.isnan().all()
    nan = torch.tensor([1.0, math.nan, 2.0, math.inf])
    assert torch.histc(nan, 4, 0, 3).tolist() == [0, 1, 1, 0]
    assert torch.histc(torch.ones(3, dtype=torch.half), 4).dtype == torch.half
    assert torch.histc(torch.ones(0), 4).tolist() == [0] * 4


METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.mark.parametrize("interpolation", METHODS)
def test_quantiles_are_numpys(interpolation: str) -> None:
    array = values(17, 4, 5, 3)
    parts = np.array([0.0, 0.1, 0.375, 0.9, 1.0])
    x, q = torch.tensor(array), torch.tensor(parts)
    for dim in (None, 0, 1, -1):
        for keepdim in (False, True):
            asked = {"dim": dim, "keepdim": keepdim, "interpolation": interpolation}
            numpys = {"axis": dim, "keepdims": keepdim, "method": interpolation}
            close(torch.quantile(x, q, **asked), np.quantile(array, parts, **numpys))
            close(x.quantile(0.3, **asked), np.quantile(array, 0.3, **numpys))
    holes = np.where(array > 1, np.nan, array)
    found = torch.nanquantile(torch.tensor(holes), q, dim=1, interpolation=interpolation)
    close(found, np.nanquantile(holes, parts, axis=1, method=interpolation))


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 0.875, 1.0])
def test_a_quantile_of_long_lines_is_numpys(interpolation: str, q: float) -> None:
    rng = np.random.default_rng(7)
    for size in (64, 65, 100, 3001):
        array = rng.normal(size=(3, size))
        x = torch.tensor(array.tolist(), dtype=torch.float64, requires_grad=True)
        found = torch.quantile(x, q, dim=1, interpolation=interpolation)
        expected = np.quantile(array, q, axis=1, method=interpolation)
        assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-12), size
        (by,) = torch.autograd.grad(found.sum(), x)
        # The weights of the elements around, wherever they stand.
        rank = q * (size - 1)
        ends = {int(np.floor(rank)), int(np.ceil(rank))}
        order = np.argsort(array, axis=1)
        for line, places in zip(by.tolist(), order, strict=True):
            assert {i for i, place in enumerate(places) if line[place] != 0} <= ends
            assert sum(line) == pytest.approx(1.0)
        beside = x.detach().clone()
        beside[1, 5] = math.nan
        found = torch.quantile(beside, q, dim=1, interpolation=interpolation)
        assert found.isnan().tolist() == [False, True, False]
        kept = torch.nanquantile(beside, q, dim=1, interpolation=interpolation)[1].item()
        rest = np.delete(array[1], 5)
        assert kept == pytest.approx(np.quantile(rest, q, method=interpolation), abs=1e-12)


def test_the_rank_of_a_quantile_has_a_derivative_in_long_lines_too() -> None:
    x = torch.arange(100.0, dtype=torch.float64) ** 2
    q = torch.tensor(0.405, dtype=torch.float64, requires_grad=True)
    (by,) = torch.autograd.grad(torch.quantile(x, q), q)
    # Between the elements 40 and 41, which are 81 apart, on the way through 99 steps.
    assert by.item() == pytest.approx(81 * 99)


def test_consecutive_elements_keep_the_first_of_equal_ones() -> None:
    x = torch.tensor([[0.0, -0.0, 2.0], [2.0, math.nan, math.nan]])
    values, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.signbit().tolist() == [False, False, False, False]
    assert values[:2].tolist() == [0.0, 2.0]
    assert values[2:].isnan().all()
    assert inverse.tolist() == [[0, 0, 1], [1, 2, 3]]
    assert counts.tolist() == [2, 2, 1, 1]
    long = torch.arange(1000).div(7, rounding_mode="floor")
    assert torch.unique_consecutive(long).tolist() == list(range(143))


def test_signs_of_all_numbers_have_a_bit() -> None:
    floats = torch.tensor([-0.0, 0.0, -math.inf, -math.nan, math.nan, -2.0])
    floats = torch.copysign(floats, torch.tensor([-1.0, 1.0, -1.0, -1.0, 1.0, -1.0]))
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        assert floats.to(dtype).signbit().tolist() == [True, False, True, True, False, True]
    assert torch.tensor([-1, 0, 3]).signbit().tolist() == [True, False, False]
    assert torch.tensor([True, False]).signbit().tolist() == [False, False]


def test_quantiles_of_nan_and_infinities() -> None:
    x = torch.tensor([[1.0, math.nan, 2.0], [3.0, 1.0, 2.0]])
    assert torch.quantile(x, 0.5, dim=1).isnan().tolist() == [True, False]
    q = torch.tensor([0.5, 0.9])
    nothing = torch.full((2,), math.nan)
    assert torch.nanquantile(nothing, q).isnan().all()
    assert torch.nanquantile(x[0], 0.5).item() == 1.5
    assert torch.quantile(torch.tensor([1.0, math.inf, 2.0]), 0.5).item() == 2.0
    assert torch.quantile(x[1], torch.tensor([])).shape == (0,)


def test_quantiles_have_gradients_to_values_and_parts() -> None:
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    q = torch.tensor(0.25, requires_grad=True)
    torch.quantile(x, q).backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]
    assert q.grad.item() == 2.0


def test_covariances_are_numpys() -> None:
    array, often = values(18, 3, 6), np.array([1, 2, 1, 3, 1, 1])
    much = np.abs(values(19, 6))
    x, f, a = torch.tensor(array), torch.tensor(often), torch.tensor(much)
    close(torch.cov(x), np.cov(array))
    close(torch.cov(x, correction=0), np.cov(array, ddof=0))
    close(torch.cov(x, fweights=f), np.cov(array, fweights=often))
    close(torch.cov(x, aweights=a), np.cov(array, aweights=much))
    close(x.cov(fweights=f, aweights=a), np.cov(array, fweights=often, aweights=much))
    close(torch.cov(x[0]), np.cov(array[0]))
    close(torch.corrcoef(x), np.corrcoef(array))
    complex_ = array + 1j * values(20, 3, 6)
    close(torch.cov(torch.tensor(complex_)), np.cov(complex_), 1e-10)
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.cov(x, correction=6).isinf().any()


# Other conventions


def test_infinities_and_reality() -> None:
    x = torch.tensor([1.0, math.inf, -math.inf, math.nan])
    assert torch.isneginf(x).tolist() == [False, False, True, False]
    assert x.isposinf().tolist() == [False, True, False, False]
    assert not torch.isposinf(torch.arange(3)).any()
    assert torch.isreal(torch.tensor([1j, 2])).tolist() == [False, True]
    assert torch.isreal(x).all()


def test_renorm_holds_norms_below_a_limit() -> None:
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert torch.allclose(x.renorm(2, 0, 1.0)[0], torch.tensor([0.6, 0.8]))
    assert x.renorm(2, 0, 1.0)[1:].equal(x[1:])
    assert x.renorm_(1, 0, 7.0) is x
    assert not hasattr(torch, "renorm_")
    nan = torch.tensor([[math.nan, 1.0], [1.0, 1.0]]).renorm(2, 0, 1.0)
    assert nan[1].isfinite().all()
    large = torch.full((2, 2), 300.0, dtype=torch.half).renorm(2, 0, 1)
    assert torch.allclose(large.float(), torch.full((2, 2), 0.7071), atol=1e-3)


def test_places_of_fixed_number() -> None:
    x = torch.tensor([[1, 0], [0, 2]])
    assert torch.nonzero_static(x, size=3).tolist() == [[0, 0], [1, 1], [-1, -1]]
    assert x.nonzero_static(size=1).tolist() == [[0, 0]]
    assert torch.nonzero_static(torch.tensor(1.0), size=2).shape == (2, 0)
    assert torch.nonzero_static(x[0], size=2, fill_value=7).tolist() == [[0], [7]]


def test_hashes_are_those_of_pytorch() -> None:
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    assert torch.hash_tensor(x).item() == 9215490737506877440
    assert torch.hash_tensor(x, dim=1).tolist() == [4609434218613702656, 4619567317775286272]
    assert x.hash_tensor(1, keepdim=True).shape == (2, 1)
    for dtype in (torch.half, torch.bfloat16, torch.float, torch.double):
        assert torch.hash_tensor(torch.tensor([1.5], dtype=dtype)).item() == 4609434218613702656
    signed = torch.tensor([-1, 3], dtype=torch.int16)
    assert torch.hash_tensor(signed).numpy() == 18446744073709551612
    assert torch.hash_tensor(x).dtype == torch.uint64


def test_distances() -> None:
    a, b = values(21, 2, 3), values(22, 3)
    x, y = torch.tensor(a), torch.tensor(b)
    for p in (0, 1, 2, 3.5, math.inf):
        close(torch.dist(x, y, p), np.linalg.norm((a - b).ravel(), p))
    assert torch.dist(x.float(), y).dtype == torch.double
    assert torch.dist(torch.ones(0), torch.ones(0)).item() == 0


REFUSED = [
    (
        RuntimeError,
        "expected src to have a size equal",
        lambda: torch.ones(2, 3).select_scatter(torch.ones(4), 0, 1),
    ),
    (
        TypeError,
        "unexpected keyword argument",
        lambda: torch.select_scatter(torch.ones(2), torch.ones(()), 0, 1, out=torch.ones(2)),
    ),
    (
        RuntimeError,
        "Input tensors must have 2 or fewer dimensions",
        lambda: torch.block_diag(torch.ones(2, 2, 2)),
    ),
    (
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
        lambda: torch.block_diag(torch.ones(2), 1),
    ),
    (TypeError, "expected Tensor as element 0", lambda: torch.cartesian_prod([torch.ones(2)])),
    (RuntimeError, "non-empty TensorList", lambda: torch.cartesian_prod()),
    (RuntimeError, "Expect a 1D vector", lambda: torch.combinations(torch.ones(2, 2))),
    (RuntimeError, "memory|too many", lambda: torch.combinations(torch.arange(10**6), 5)),
    (
        RuntimeError,
        "Attempting to broadcast a dimension of length 3 at -1",
        lambda: torch.broadcast_shapes((2,), (3,)),
    ),
    (ValueError, "negative length", lambda: torch.broadcast_shapes((2, -1), (3,))),
    (RuntimeError, "Input shapes should be of type ints", lambda: torch.broadcast_shapes(2.0)),
    (TypeError, "to be integer dtype", lambda: torch.unravel_index(torch.ones(1), (2,))),
    (
        ValueError,
        "cannot have negative values",
        lambda: torch.unravel_index(torch.tensor([1]), (2, -3)),
    ),
    (TypeError, "to only contain ints", lambda: torch.unravel_index(torch.tensor([1]), (2, "a"))),
    (TypeError, "int or sequence of ints", lambda: torch.unravel_index(torch.tensor([1]), 2.0)),
    (RuntimeError, "is not expandable to size", lambda: torch.ones(4, 2, 3).sum_to_size(4, 2)),
    (TypeError, "missing 1 required positional argument", lambda: torch.ones(2).sum_to_size()),
    (RuntimeError, "Duplicate dim not allowed", lambda: torch.empty_permuted((2, 3), (0, 0))),
    (
        NotImplementedError,
        "does not support uint8",
        lambda: torch.gradient(torch.ones(4, dtype=torch.uint8)),
    ),
    (
        TypeError,
        "invalid combination of arguments",
        lambda: torch.gradient(torch.ones(4), spacing=torch.ones(4)),
    ),
    (
        NotImplementedError,
        "bool is not supported",
        lambda: torch.trapezoid(torch.ones(3, dtype=torch.bool)),
    ),
    (RuntimeError, "dx as a real number", lambda: torch.trapezoid(torch.ones(3), dx=2j)),
    (IndexError, "dim", lambda: torch.cumulative_trapezoid(torch.ones(()))),
    (
        RuntimeError,
        "same dtype as the input tensor",
        lambda: torch.quantile(torch.ones(3), torch.tensor([0.5]).double()),
    ),
    (RuntimeError, "must be in the range", lambda: torch.quantile(torch.ones(3), -0.1)),
    (TypeError, "does not support complex", lambda: torch.isneginf(torch.tensor([1j]))),
    (RuntimeError, "out", lambda: torch.isneginf(torch.ones(1), out=torch.empty(1))),
    (
        RuntimeError,
        "non-positive-norm not supported",
        lambda: torch.renorm(torch.ones(2, 2), 0, 0, 1),
    ),
    (
        RuntimeError,
        "expected scalar type Int but found Double",
        lambda: linalg.cross(torch.ones(3).int(), torch.ones(3).double()),
    ),
    (
        NotImplementedError,
        "not implemented for 'Bool'",
        lambda: torch.trace(torch.ones(2, 2, dtype=torch.bool)),
    ),
    (RuntimeError, "is not finite", lambda: torch.histogram(torch.tensor([1.0, math.inf]), 4)),
    (RuntimeError, "Unknown hash_tensor mode", lambda: torch.hash_tensor(torch.ones(2), mode=1)),
    (
        RuntimeError,
        "fweights cannot be negative",
        lambda: torch.cov(torch.ones(2, 2), fweights=torch.tensor([-1, 2])),
    ),
]


@pytest.mark.parametrize(("kind", "phrase", "call"), REFUSED)
def test_bad_input_raises_the_class_that_pytorch_raises(kind, phrase, call) -> None:
    with pytest.raises(kind, match=phrase):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.column_stack((torch.ones(2),), out=out),
        lambda out: torch.diag(torch.ones(2), out=out),
        lambda out: torch.diff(torch.ones(3), out=out),
        lambda out: torch.kron(torch.ones(2), torch.ones(2), out=out),
        lambda out: torch.histc(torch.ones(3), 4, out=out),
        lambda out: torch.quantile(torch.ones(3), torch.tensor([0.1, 0.2]), out=out),
        lambda out: torch.renorm(torch.ones(2, 2), 2, 0, 1, out=out),
        lambda out: linalg.cross(torch.ones(3), torch.ones(3), out=out),
    ],
)
def test_targets_of_another_size_are_resized_with_a_warning(call) -> None:
    with pytest.warns(UserWarning, match=RESIZED):
        filled = call(torch.empty(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = call(torch.empty(0))
    assert filled.equal(again)


# Short ways


def test_whole_numbers_take_the_short_way_only_where_it_gives_their_dtype() -> None:
    whole = torch.tensor([-7, 0, 3, 2**62])
    cases = [
        (lambda t: t + 3, torch.int64, [-4, 3, 6, 2**62 + 3]),
        (lambda t: 3 - t, torch.int64, [10, 3, 0, 3 - 2**62]),
        (lambda t: t | 4, torch.int64, [-7 | 4, 4, 7, 2**62 | 4]),
        (lambda t: 4 | t, torch.int64, [-7 | 4, 4, 7, 2**62 | 4]),
        (lambda t: t % 4, torch.int64, [1, 0, 3, 0]),
        (lambda t: t > 2, torch.bool, [False, False, True, True]),
        (lambda t: torch.add(t, 1, alpha=2), torch.int64, [-5, 2, 5, 2**62 + 2]),
        (lambda t: t[:3] * 0.5, torch.float32, [-3.5, 0.0, 1.5]),
        (lambda t: t[:3] * True, torch.int64, [-7, 0, 3]),
        (lambda t: t[:3] + torch.tensor(2.5), torch.float32, [-4.5, 2.5, 5.5]),
        (lambda t: torch.exp(t[1:2]), torch.float32, [1.0]),
        (lambda t: torch.copysign(t[:3], -2), torch.float32, [-7.0, -0.0, -3.0]),
        (lambda t: torch.xlogy(t[:3], 1), torch.float32, [-0.0, 0.0, 0.0]),
        (lambda t: torch.xlogy(2, t[2:3] - 2), torch.float32, [0.0]),
    ]
    for index, (call, dtype, expected) in enumerate(cases):
        result = call(whole)
        assert (result.dtype, result.tolist()) == (dtype, expected), index


def test_whole_numbers_are_refused_on_the_short_way_as_on_the_long_one() -> None:
    whole = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(whole, whole, alpha=0.5)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        whole % 0
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        whole += 0.5
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        whole.exp_()
    whole += 4
    assert whole.tolist() == [5, 6]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_equal_compares_elements_however_they_lie(dtype: str) -> None:
    a = torch.tensor([[i * 5 % 7 % 3 for i in range(100)] for _ in range(3)]).to(
        getattr(torch, dtype)
    )
    b = a.clone()
    assert torch.equal(a, b)
    assert torch.equal(a.t(), b.t())
    assert torch.equal(a.t(), b.t().contiguous())
    assert torch.equal(a, b.double() if dtype != "complex64" else b.to(torch.complex128))
    b[2, 99] = 1 - b[2, 99].item().real
    assert not torch.equal(a, b)
    assert torch.equal(a[:, :99], b[:, :99])
    assert not torch.equal(a.t(), b.t())
    assert not torch.equal(a, a.reshape(100, 3))
    assert torch.equal(a[:0], b[:0])


def test_equal_takes_zeros_for_equal_and_no_nan() -> None:
    assert torch.equal(torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]))
    nan = torch.tensor([math.nan])
    assert not torch.equal(nan, nan)


@pytest.mark.parametrize("others", [[3, 3], list(range(3, 40))])
def test_isin_finds_elements_among_few_and_many(others: list[int]) -> None:
    x = torch.tensor([[2, 3, 39], [40, -3, 12]])
    expected = [[i in others for i in row] for row in x.tolist()]
    assert torch.isin(x, torch.tensor(others)).tolist() == expected
    assert torch.isin(x.t(), torch.tensor(others)).t().tolist() == expected
    kinds = [torch.uint8, torch.float32, torch.float16]
    for kind in kinds:
        assert torch.isin(x.clamp(min=0), torch.tensor(others, dtype=kind)).tolist() == expected
    inverse = torch.isin(x, torch.tensor(others), invert=True)
    assert torch.equal(inverse, torch.isin(x, torch.tensor(others)).logical_not())
    nan = torch.tensor([math.nan, 3.0])
    both = torch.cat([nan, torch.tensor(others)])
    assert torch.isin(nan, both).tolist() == [False, True]


def test_as_strided_scatter_has_gradients_wherever_self_and_the_view_lie() -> None:
    part = torch.randn(2, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(3, 4, dtype=torch.float64)
    for own in (memory, memory.t(), memory[1:], memory[:, 1:], memory[0].expand(2, 4)):
        for stride, offset in (((2,), None), ((0,), 3), ((5,), 1)):
            own = own.detach().requires_grad_()

            def scattered(x, src, stride=stride, offset=offset):
                return torch.as_strided_scatter(x, src, (2,), stride, offset)

            # (The checks hand over tensors of their own, which lie elsewhere: gradients by hand.)
            out = scattered(own, part)
            grad = torch.randn_like(out)
            by_own, by_part = torch.autograd.grad(out, (own, part), grad)
            step = 1e-6
            for at in np.ndindex(*own.shape) if own.stride(0) else ():
                own.detach()[at] += step
                slope = ((scattered(own, part) - out) * grad).sum().item() / step
                own.detach()[at] -= step
                assert by_own[at].item() == pytest.approx(slope, abs=1e-5)
            for i in range(2):
                moved = part.detach().clone()
                moved[i] += step
                slope = ((scattered(own, moved) - out) * grad).sum().item() / step
                assert by_part[i].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("count", [2047, 2048, 4100, 70000])
@pytest.mark.parametrize("shift", [0, 1, 3, 63, 64])
def test_long_runs_are_copied_wherever_they_lie(count: int, shift: int) -> None:
    x = (torch.arange(count + 64) % 251).to(torch.uint8)
    part = x[shift : shift + count]
    expected = part.tolist()
    assert part.clone().tolist() == expected
    assert torch.cat([part[:7], part[7:]]).tolist() == expected
    memory = torch.zeros(count + 64, dtype=torch.uint8)
    memory[63 - shift % 64 :][:count].copy_(part)
    assert memory.tolist() == [0] * (63 - shift % 64) + expected + [0] * (1 + shift % 64)
    filled = torch.zeros(count + 64, dtype=torch.int16)
    filled[shift : shift + count].fill_(-259)
    assert filled.tolist() == [0] * shift + [-259] * count + [0] * (64 - shift)
