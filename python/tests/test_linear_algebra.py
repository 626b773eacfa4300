"""Linear algebra from Python: what broadcasts, what is singular, which targets are refused."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(
    ("a", "b"),
    [((1, 4, 3), (5, 4, 2)), ((5, 4, 3), (1, 4, 2)), ((2, 1, 4, 3), (1, 3, 4, 1))],
)
def test_least_squares_broadcast_both_ways(driver: str, a: Any, b: Any) -> None:
    torch.manual_seed(0)
    left = torch.randn(a, dtype=torch.float64)
    right = torch.randn(b, dtype=torch.float64)
    found = torch.linalg.lstsq(left, right, driver=driver)
    batch = torch.broadcast_shapes(a[:-2], b[:-2])
    assert found.solution.shape == (*batch, 3, b[-1])
    torch.testing.assert_close(found.solution, torch.linalg.pinv(left) @ right)
    # Ranks and singular values are those of the matrices, which were not repeated.
    if driver != "gels":
        assert found.rank.shape == a[:-2]
        assert bool((found.rank == 3).all())
    if driver in ("gelsd", "gelss"):
        torch.testing.assert_close(found.singular_values, torch.linalg.svdvals(left))


def test_least_squares_of_no_right_hand_sides() -> None:
    found = torch.linalg.lstsq(torch.randn(1, 3, 2), torch.randn(0, 3, 2))
    assert found.solution.shape == (0, 2, 2)


@pytest.mark.parametrize("order", ["nuc", "fro", 1, -1, 2, torch.inf])
def test_singular_matrices_have_an_infinite_condition_number(order: Any) -> None:
    singular = torch.diag(torch.tensor([1.0, 2.0, 0.0]))
    both = torch.stack([singular, torch.eye(3)])
    found = torch.linalg.cond(both, order)
    assert found[0] == torch.inf
    torch.testing.assert_close(found[1], torch.linalg.cond(torch.eye(3), order))


@pytest.mark.parametrize(
    ("name", "output"),
    [("pinv", "result"), ("cond", "result"), ("eigvals", "result"), ("eig", "eigenvalues")],
)
def test_targets_of_another_kind_are_refused(name: str, output: str) -> None:
    out: Any = torch.empty(0, dtype=torch.int32)
    if name == "eig":
        out = (out, torch.empty(0, dtype=torch.complex64))
    phrase = f"linalg_{name}: Expected {output} to be safely castable from .*Float dtype, but got "
    with pytest.raises(RuntimeError, match=f"{phrase}{output} with dtype Int"):
        getattr(torch.linalg, name)(torch.eye(2), out=out)


def test_bytes_are_multiplied_in_wider_integers() -> None:
    a = torch.full((2, 300), -128, dtype=torch.int8)
    b = torch.full((300, 3), 127, dtype=torch.int8)
    product = torch._int_mm(a, b)
    assert product.dtype is torch.int32
    assert product.tolist() == [[-128 * 127 * 300] * 3] * 2
    assert torch._int_mm(b.t(), a.t()).shape == (3, 2)
    unsigned = torch.full((1, 2), 255, dtype=torch.uint8)
    assert torch._int_mm(unsigned, b[:2]).tolist() == [[255 * 127 * 2] * 3]
    out = torch.empty(2, 3, dtype=torch.int32)
    assert torch._int_mm(a, b, out=out) is out
    batched = torch.vmap(torch._int_mm, in_dims=(0, None))(torch.stack([a, a + 1]), b)
    assert torch.equal(batched[1], torch._int_mm(a + 1, b))
    with pytest.raises(RuntimeError, match="Expected mat2 dtype to be of type int8 but got uint8"):
        torch._int_mm(a, b.byte())


def test_an_activation_follows_the_product() -> None:
    bias, a, b = torch.randn(4), torch.randn(2, 3), torch.randn(3, 4)
    product = torch.addmm(bias, a, b, beta=2, alpha=0.5)
    found = torch._addmm_activation(bias, a, b, beta=2, alpha=0.5)
    torch.testing.assert_close(found, product.relu())
    found = torch._addmm_activation(bias, a, b, beta=2, alpha=0.5, use_gelu=True)
    torch.testing.assert_close(found, torch.nn.functional.gelu(product))


def test_shapes_that_broadcast_are_inferred() -> None:
    assert torch._C._infer_size((2, 1), (3,)) == torch.Size((2, 3))
    with pytest.raises(RuntimeError, match="size of tensor a"):
        torch._C._infer_size((2,), (3,))
    assert torch._C.has_lapack


def test_diagonals_are_filled() -> None:
    tall = torch.zeros(7, 3)
    assert tall.fill_diagonal_(1, wrap=True) is tall
    assert tall.nonzero().tolist() == [[0, 0], [1, 1], [2, 2], [4, 0], [5, 1], [6, 2]]
    assert torch.zeros(7, 3).fill_diagonal_(1).sum() == 3
    assert torch.zeros(2, 5).t().fill_diagonal_(1).sum() == 2
    cube = torch.zeros(3, 3, 3).fill_diagonal_(2)
    assert cube.nonzero().tolist() == [[i, i, i] for i in range(3)]
    assert torch.zeros(0, 3).fill_diagonal_(1, wrap=True).shape == (0, 3)
    assert torch.zeros(0, 2**40).fill_diagonal_(1, wrap=True).shape == (0, 2**40)
    x = torch.ones(3, 3, requires_grad=True)
    (x * 2).fill_diagonal_(5).sum().backward()
    assert torch.equal(x.grad, 2 * (1 - torch.eye(3)))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        torch.zeros(3).fill_diagonal_(1)


def test_masked_softmax_leaves_out_what_the_mask_says() -> None:
    x = torch.randn(2, 3, 4, 4)
    attention = torch.zeros(4, 4, dtype=torch.bool).fill_diagonal_(True)
    keys = torch.tensor([[False, True, False, False], [True, False, False, True]])
    for mask, kind, wide in (
        (attention, 0, attention),
        (keys, 1, keys[:, None, None]),
        (x > 1, 2, x > 1),
    ):
        found = torch._masked_softmax(x, mask, 3, kind)
        torch.testing.assert_close(
            found, x.masked_fill(wide, -torch.inf).softmax(3), equal_nan=True
        )
    nothing = torch._masked_softmax(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool))
    assert bool(nothing.isnan().all())


@pytest.mark.parametrize("name", ["inv", "cholesky", "eigvalsh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_targets_of_another_dtype_are_named(name: str, dtype: torch.dtype) -> None:
    a = torch.eye(2, dtype=dtype)
    number = "float" if dtype is torch.float32 else "double"
    if dtype.is_complex and name != "eigvalsh":
        number = "c10::complex<double>"
    phrase = f"Expected out tensor to have dtype {number}, but got long int instead"
    with pytest.raises(RuntimeError, match=phrase):
        getattr(torch.linalg, name)(a, out=torch.empty(0, dtype=torch.int64))


def test_a_vector_has_no_nuclear_norm() -> None:
    for dim in ((), (0,), (0, 1)):
        with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
            torch.norm(torch.ones(2), "nuc", dim)


def test_a_tracker_sees_settings_and_residuals() -> None:
    seen: list[Any] = []

    def look(worker: Any) -> None:
        assert worker.tvars["rerr"].shape == (worker.iparams["n"],)
        seen.append(dict(worker.ivars))
        if worker.ivars["converged_count"] >= worker.iparams["k"]:
            assert float(worker.tvars["rerr"][: worker.iparams["k"]].max()) < worker.fparams["tol"]

    a = torch.diag(torch.arange(1.0, 13.0, dtype=torch.float64))
    values, _ = torch.lobpcg(a, 2, tol=1e-9, tracker=look)
    torch.testing.assert_close(values, torch.tensor([12.0, 11.0], dtype=torch.float64))
    assert [step["istep"] for step in seen] == list(range(len(seen)))
