"""Sparse tensors from Python: constructors, printing, conversions, gradients, what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck

COMPRESSED = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
LAYOUTS = ["sparse_coo", *COMPRESSED]
# Blocks specify zeros too.
WITHOUT_BLOCKS = LAYOUTS[:3]


def example(dtype: Any = torch.float64) -> Any:
    return torch.tensor([[0, 2, 0, 1], [3, 0, 4, 0]], dtype=dtype)


def laid_out(dense: Any, name: str) -> Any:
    layout = getattr(torch, name)
    blocks = (1, 2) if name in ("sparse_bsr", "sparse_bsc") else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


def test_lists_become_indices_and_values() -> None:
    x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    assert x.to_dense().tolist() == [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]
    assert (x.layout, x.is_sparse, x._nnz()) == (torch.sparse_coo, True, 3)
    assert torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0]).shape == (3,)
    empty = torch.sparse_coo_tensor((2, 3))
    assert (empty._nnz(), empty.shape, empty.is_coalesced()) == (0, (2, 3), True)


def test_printed_tensors_show_their_parts() -> None:
    assert repr(example(torch.float32).to_sparse()) == (
        "tensor(indices=tensor([[0, 0, 1, 1],\n"
        "                       [1, 3, 0, 2]]),\n"
        "       values=tensor([2., 1., 3., 4.]),\n"
        "       size=(2, 4), nnz=4, layout=torch.sparse_coo)"
    )
    assert repr(example(torch.float32).to_sparse_csr().requires_grad_()) == (
        "tensor(crow_indices=tensor([0, 2, 4]),\n"
        "       col_indices=tensor([1, 3, 0, 2]),\n"
        "       values=tensor([2., 1., 3., 4.]), size=(2, 4), nnz=4,\n"
        "       layout=torch.sparse_csr, requires_grad=True)"
    )
    assert repr(torch.sparse_coo_tensor((2, 3))) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=torch.sparse_coo)"
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_and_pickles_keep_layout_and_elements(name: str) -> None:
    x = laid_out(example(), name).requires_grad_()
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin.layout is x.layout
        assert twin.requires_grad
        assert torch.equal(twin.detach().to_dense(), example())


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_are_those_of_differences(name: str, masked: bool) -> None:
    x = laid_out(example(), name).requires_grad_()
    functions = [
        lambda x: x.to_dense(masked_grad=masked),
        lambda x: (x * 3).to_dense(masked_grad=masked),
        lambda x: (x * x).to_dense(masked_grad=masked),
        lambda x: x.sum(),
    ]
    for function in functions:
        assert gradcheck(function, (x,), masked=masked)
        assert gradcheck(function, (x,), masked=masked, fast_mode=True)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_product_has_gradients_of_both_kinds(name: str) -> None:
    x = laid_out(example(), name).requires_grad_()
    dense = torch.arange(8.0, dtype=torch.float64).reshape(4, 2).requires_grad_()
    assert gradcheck(lambda x, y: torch.sparse.mm(x, y), (x, dense), masked=True)
    torch.sparse.mm(x, dense).sum().backward()
    assert x.grad.layout is x.layout
    specified = example() != 0
    if name not in WITHOUT_BLOCKS:
        specified = specified.reshape(2, 2, 2).any(2, keepdim=True).expand(2, 2, 2).reshape(2, 4)
    expected = (dense.detach().sum(1).expand(2, 4) * specified).tolist()
    assert x.grad.to_dense().tolist() == expected
    assert dense.grad.tolist() == example().sum(0).reshape(4, 1).expand(4, 2).tolist()


@pytest.mark.parametrize("name", WITHOUT_BLOCKS)
@pytest.mark.parametrize("function", ["sin", "sqrt", "tanh", "expm1", "relu", "abs", "square"])
def test_functions_that_leave_zero_alone_have_gradients_on_the_values(
    name: str, function: str
) -> None:
    x = laid_out(example(), name).requires_grad_()

    def f(x: Any) -> Any:
        return getattr(x, function)().to_dense()

    assert gradcheck(f, (x,), masked=True, check_undefined_grad=False)
    assert torch.equal(f(x.detach()), getattr(example(), function)())


def test_constructors_are_differentiable_twice() -> None:
    indices = torch.tensor([[0, 1, 1], [1, 0, 0]])
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def f(values: Any) -> Any:
        x = torch.sparse_coo_tensor(indices, values, (2, 2))
        return (x * x).to_dense()

    assert gradcheck(f, (values,))
    assert gradgradcheck(f, (values,))


@pytest.mark.parametrize(
    ("index", "shape"), [(0, (4,)), ((slice(None), 1), (2,)), ((0, 1), ()), (slice(1, 2), (1, 4))]
)
def test_parts_are_those_of_the_dense_tensor(index: Any, shape: tuple[int, ...]) -> None:
    x = example().to_sparse().requires_grad_()
    part = x[index]
    assert part.shape == shape
    assert torch.equal(part.detach().to_dense(), example()[index])
    part.to_dense().sum().backward()
    ones = torch.zeros(2, 4, dtype=torch.float64)
    ones[index] = 1
    assert torch.equal(x.grad.to_dense() * (example() != 0), ones * (example() != 0))


def test_an_embedding_gives_the_rows_that_were_read() -> None:
    layer = torch.nn.Embedding(5, 2, sparse=True)
    layer(torch.tensor([1, 3, 1])).sum().backward()
    assert layer.weight.grad.is_sparse
    assert layer.weight.grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]]
    before = layer.weight.detach().clone()
    torch.optim.SGD(layer.parameters(), lr=0.5).step()
    assert torch.allclose(before - layer.weight.detach(), 0.5 * layer.weight.grad.to_dense())


def test_gather_gives_the_elements_that_were_read() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    index = torch.tensor([[0, 2], [1, 1]])
    torch.gather(x, 1, index, sparse_grad=True).sum().backward()
    assert x.grad.is_sparse
    assert x.grad.to_dense().tolist() == [[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]


def test_the_only_element_is_a_number() -> None:
    twice = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (1,))
    without_dims = torch.tensor(3.0).to_sparse()
    block = torch.full((1, 1), 3.0).to_sparse_bsr((1, 1))
    for tensor in (twice, without_dims, block, without_dims.clone().requires_grad_()):
        assert tensor.item() == 3.0
        assert float(tensor) == 3.0
        assert bool(tensor)
    assert f"{without_dims:.1f}" == "3.0"
    for layout in (torch.sparse_coo, torch.sparse_csr):
        nothing = torch.zeros(1, 1, dtype=torch.complex64).to_sparse(layout=layout)
        assert nothing.item() == 0
        assert not nothing
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        torch.ones(2).to_sparse().item()


def test_sums_over_dimensions_stay_sparse_while_a_sparse_one_is_left() -> None:
    x = example().to_sparse().requires_grad_()
    rows = torch.sparse.sum(x, 1)
    assert rows.is_sparse
    assert rows.to_dense().tolist() == [3.0, 7.0]
    assert torch.sparse.sum(x, (0, 1)).item() == 10
    assert torch.sparse.sum(x).item() == 10
    torch.sparse.sum(x, 1).to_dense().sum().backward()
    assert x.grad.is_sparse
    assert x.grad.to_dense().tolist() == (example() != 0).double().tolist()


def test_sampled_products_are_made_at_the_places_of_the_mask() -> None:
    mask = example().to_sparse_csr()
    a = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    b = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    made = torch.sparse.sampled_addmm(mask, a, b, beta=0.5, alpha=2.0)
    expected = (0.5 * example() + 2 * (a @ b)) * (example() != 0)
    assert made.layout is torch.sparse_csr
    assert torch.equal(made.to_dense(), expected)


def test_diagonals_are_put_where_their_offsets_say() -> None:
    rows = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    made = torch.sparse.spdiags(rows, torch.tensor([0, 1]), (3, 3))
    assert made.to_dense().tolist() == [[1.0, 5.0, 0.0], [0.0, 2.0, 6.0], [0.0, 0.0, 3.0]]


@pytest.mark.parametrize(
    ("diagonals", "offsets", "shape", "phrase"),
    [
        (torch.ones(1, 2, 3), [0, 1], (3, 3), "Diagonals must be vector or matrix"),
        (torch.ones(2, 3), [[0, 1]], (3, 3), "Offsets must be scalar or vector"),
        (torch.ones(2, 3), [0, 1], (3, 2, 3), "Output shape must be 2d"),
        (torch.ones(2, 3), [0], (3, 3), r"Number of diagonals \(2\) does not match .* \(1\)"),
        (torch.ones(2, 3), [0.0, 1.0], (3, 3), "must have dtype Long"),
        (torch.ones(2, 3), [1, 1], (3, 3), "contains duplicate values"),
    ],
)
def test_diagonals_that_cannot_be_put(
    diagonals: Any, offsets: Any, shape: Any, phrase: str
) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        torch.sparse.spdiags(diagonals, torch.tensor(offsets), shape)


def test_diagonals_have_no_layout_of_blocks() -> None:
    with pytest.raises(RuntimeError, match=r"Only output layouts .* got torch.sparse_bsr"):
        torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([0]), (3, 3), layout=torch.sparse_bsr)


@pytest.mark.parametrize("name", WITHOUT_BLOCKS)
@pytest.mark.parametrize("make", [torch.zeros, torch.empty])
def test_new_tensors_of_a_sparse_layout_specify_nothing(make: Any, name: str) -> None:
    layout = getattr(torch, name)
    for shape in [(2, 3), (4, 2, 3), (0, 3)]:
        x = make(shape, layout=layout, dtype=torch.float16)
        assert (x.layout, x.dtype, x.shape, x._nnz()) == (layout, torch.float16, shape, 0)
        assert torch.equal(x.to_dense(), torch.zeros(shape, dtype=torch.float16))
        wide = torch.zeros(1).new_zeros(shape, layout=layout)
        assert (wide.layout, wide.dtype, wide._nnz()) == (layout, torch.float32, 0)
        like = torch.zeros_like(torch.ones(shape), layout=layout)
        assert (like.layout, like.shape, like._nnz()) == (layout, shape, 0)
    assert make((2, 3), layout=layout, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", WITHOUT_BLOCKS)
def test_new_tensors_beside_a_sparse_one_have_its_layout(name: str) -> None:
    x = laid_out(example(), name)
    for made in (x.new_zeros((3, 5)), x.new_empty((3, 5))):
        assert (made.layout, made.dtype, made.shape) == (x.layout, x.dtype, (3, 5))
        assert not made.to_dense().any()
    assert x.new_zeros(2, 2, layout=torch.strided).tolist() == [[0, 0], [0, 0]]
    assert x.new_zeros(2, 2, dtype=torch.int32).dtype is torch.int32


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: torch.zeros(3, layout=torch.sparse_csr), RuntimeError, r"Only batched .*\[3\]"),
        (lambda: torch.zeros(2, 3, layout=torch.sparse_bsr), RuntimeError, "SparseBsr is made of"),
        (lambda: torch.ones(2, layout=torch.sparse_coo), NotImplementedError, "sparse_coo is not"),
        (
            lambda: torch.empty_like(example().to_sparse(), memory_format=torch.preserve_format),
            RuntimeError,
            "memory format option is only supported by strided tensors",
        ),
        (
            lambda: torch.ones(1).to_sparse(blocksize=(1, 2, 3)),
            RuntimeError,
            "blocksize needs to be a tuple of size 2, but got 3",
        ),
        (
            lambda: torch.cat([torch.ones(2, 3).to_sparse(), torch.ones(2, 4).to_sparse()]),
            RuntimeError,
            r"All tensors must have the same shape: \[2, 3\].*\[2, 4\] at position 1",
        ),
    ],
)
def test_new_tensors_that_cannot_be_sparse(call: Any, error: Any, phrase: str) -> None:
    with pytest.raises(error, match=phrase):
        call()


def test_one_value_is_the_list_of_it() -> None:
    x = torch.sparse_coo_tensor([[0], [2]], 3.0)
    assert x.to_dense().tolist() == [[0.0, 0.0, 3.0]]
    assert torch.sparse_coo_tensor([[0], [2]], 3, (1, 4)).to_dense().tolist() == [[0, 0, 3, 0]]


def test_dense_dimensions_broadcast() -> None:
    a = torch.arange(1.0, 7.0).reshape(2, 3).to_sparse(1)
    b = torch.tensor([[2.0], [0.0]]).to_sparse(1)
    for product in (a * b, b * a):
        assert product.shape == (2, 3)
        assert torch.equal(product.to_dense(), a.to_dense() * b.to_dense())
    product = a.to_dense().to_sparse() * b.to_dense().to_sparse()
    assert torch.equal(product.to_dense(), a.to_dense() * b.to_dense())
    x = b.to_dense().to_sparse().requires_grad_()
    y = torch.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    (x * y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.to_dense().tolist()[0] == [2]
    assert y.grad.to_dense().tolist() == [[2, 2, 2]]
    with pytest.raises(RuntimeError, match="expected sizes of 'self' and 'other' to match"):
        a.to_dense().to_sparse_csr() * b.to_dense().to_sparse_csr()


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("block", [(1, 1), (1, 2), (2, 2)])
def test_a_mask_of_blocks_keeps_its_form(name: str, block: Any) -> None:
    blocks = block if name in ("sparse_bsr", "sparse_bsc") else None
    mask = example().bool().to_sparse(layout=getattr(torch, name), blocksize=blocks)
    x = torch.arange(8.0).reshape(2, 4)
    found = x.sparse_mask(mask)
    assert (found.layout, found.values().shape) == (mask.layout, mask.values().shape)
    where = torch.ones_like(mask.values())
    kept = torch.sparse_compressed_tensor(
        *(
            (mask.crow_indices(), mask.col_indices())
            if name in ("sparse_csr", "sparse_bsr")
            else (mask.ccol_indices(), mask.row_indices())
        ),
        where,
        mask.shape,
        layout=mask.layout,
    )
    assert torch.equal(found.to_dense(), torch.where(kept.to_dense(), x, 0.0))


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: x + 1, RuntimeError, r"add\(sparse, dense\) is not supported"),
        (lambda x: x.cos(), NotImplementedError, "'aten::cos' with arguments from the 'SparseCPU'"),
        (lambda x: x.numpy(), TypeError, "can't convert Sparse layout tensor to numpy"),
        (lambda x: x.data_ptr(), RuntimeError, "doesn't have storage"),
        (lambda x: x.untyped_storage(), NotImplementedError, "Cannot access storage"),
        (lambda x: x.crow_indices(), RuntimeError, "expected sparse row compressed"),
        (lambda x: x.__setitem__(0, 1), TypeError, "Cannot assign to a sparse tensor"),
        (lambda x: x.values(), RuntimeError, "uncoalesced tensor, please call .coalesce"),
        (lambda x: x / x, RuntimeError, "Sparse division requires a scalar"),
        (lambda x: x**-1, RuntimeError, "powers above 0"),
        (lambda x: x.to_dense().copy_(x), RuntimeError, "between dense and sparse"),
        (lambda x: setattr(x.to_dense(), "data", x), RuntimeError, "incompatible tensor type"),
        (lambda x: torch.vmap(lambda v: v.to_sparse())(x.to_dense()), RuntimeError, "vmap"),
    ],
)
def test_what_sparse_tensors_cannot_do_is_said(call: Any, error: type, phrase: str) -> None:
    x = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
    with pytest.raises(error, match=phrase):
        call(x)


@pytest.mark.parametrize(
    ("indices", "values", "size", "phrase"),
    [
        ([[0, 5]], [1.0, 2.0], (3,), "size is 3 but found index 5"),
        ([[0, -1]], [1.0, 2.0], (3,), "found negative index -1"),
        ([[0, 1]], [1.0], (3,), "same nnz"),
        ([0, 1], [1.0, 2.0], (3,), "sparse_dim x nnz"),
        ([[0, 1]], [1.0, 2.0], (3, 3), "number of dimensions must be"),
        ([[2**60]], [1.0], None, "too large"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    indices: Any, values: Any, size: Any, phrase: str
) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        torch.sparse_coo_tensor(indices, values, size)


def test_values_of_ops_do_not_depend_on_sparse_tensors_elsewhere() -> None:
    x = torch.linspace(0.1, 3, 50, requires_grad=True)

    def slope() -> Any:
        return torch.autograd.grad(x.cumprod(0).sum(), x)[0]

    alone = slope()
    other = example().to_sparse()
    assert torch.equal(slope(), alone)
    del other


@pytest.mark.parametrize("name", LAYOUTS)
def test_indices_that_were_written_to_are_found_out(name: str) -> None:
    shown = {
        "sparse_coo": ["_indices"],
        "sparse_csr": ["crow_indices", "col_indices"],
        "sparse_csc": ["ccol_indices", "row_indices"],
        "sparse_bsr": ["crow_indices", "col_indices"],
        "sparse_bsc": ["ccol_indices", "row_indices"],
    }
    for part in shown[name]:
        for wrong in (7, -1, 2**62):
            x = laid_out(example(), name)
            getattr(x, part)().fill_(wrong)
            uses = [
                lambda x: x.to_dense(),
                lambda x: x @ example().t(),
                lambda x: x + x,
                lambda x: x * example(),
                lambda x: x.t(),
                lambda x: x[0],
                lambda x: x.sum(0),
            ]
            for use in uses:
                with pytest.raises(RuntimeError, match="were written to"):
                    use(x)


@pytest.mark.parametrize("name", LAYOUTS)
def test_sparse_tensors_keep_their_sizes_and_memory(name: str) -> None:
    x = laid_out(example(), name)
    refusal = "is not for tensors of layout" if name == "sparse_coo" else "smaller value"
    with pytest.raises(RuntimeError, match=refusal):
        x.resize_(1, 1)
    with pytest.raises(RuntimeError, match=r"set_\(\) is not for sparse tensors"):
        x.set_(torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"set_\(\) is not for sparse tensors"):
        torch.ones(2, dtype=torch.float64).set_(x)
    assert torch.equal(x.to_dense(), example())


@pytest.mark.parametrize("name", ["sparse_csr", "sparse_csc"])
def test_compressed_tensors_grow_and_lose_lines(name: str) -> None:
    dense = torch.tensor([[1.0, 2.0], [0.0, 3.0]], dtype=torch.float64)
    x = laid_out(dense, name)
    version = x._version
    assert x.resize_(3, 4) is x
    assert x._version == version + 1
    assert torch.equal(x.to_dense(), torch.nn.functional.pad(dense, (0, 2, 0, 1)))
    # Compressed lines can go, with what they specify.
    y = laid_out(dense, name)
    size, kept = ((1, 2), dense[:1]) if name == "sparse_csr" else ((2, 1), dense[:, :1])
    assert torch.equal(y.resize_(*size).to_dense(), kept)
    for wrong in [(4,), (2, 2, 2), (2, 1) if name == "sparse_csr" else (1, 2)]:
        z = laid_out(dense, name)
        with pytest.raises(RuntimeError, match=r"only rows and columns|smaller value"):
            z.resize_(*wrong)
        assert torch.equal(z.to_dense(), dense)


def test_blocked_and_batched_tensors_grow() -> None:
    eye = torch.eye(4, dtype=torch.float64)
    x = eye.to_sparse_bsr((2, 2)).resize_(6, 6)
    assert torch.equal(x.to_dense(), torch.nn.functional.pad(eye, (0, 2, 0, 2)))
    with pytest.raises(RuntimeError, match="blocks of 2 by 2 do not fill it"):
        x.resize_(7, 6)
    batch = torch.stack([eye, 2 * eye])
    y = batch.to_sparse_csr().resize_(2, 5, 6)
    assert torch.equal(y.to_dense(), torch.nn.functional.pad(batch, (0, 2, 0, 1)))
    with pytest.raises(RuntimeError, match="so that no row can go"):
        y.resize_(2, 4, 6)


def test_embedding_reads_rows_of_a_sparse_table() -> None:
    table, rows = torch.eye(4)[:3], torch.tensor([0, 2, 2])
    read = torch.nn.functional.embedding(rows, table.to_sparse())
    assert read.layout == torch.sparse_coo
    assert torch.equal(read.to_dense(), table[rows])
    with pytest.raises(NotImplementedError, match="indices of 2 dimensions"):
        torch.nn.functional.embedding(rows[None], table.to_sparse())
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match="index out of range in self"):
            torch.nn.functional.embedding(torch.tensor([wrong]), table.to_sparse())


def specified() -> Any:
    places = [[0, 0, 2, 2, 2], [1, 3, 0, 3, 1]]
    values = torch.tensor([1.0, 2.0, 3.0, -4.0, 0.5], dtype=torch.float64)
    return torch.sparse_coo_tensor(places, values, (3, 4)).coalesce()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_is_of_what_is_specified(dim: int) -> None:
    x = specified()
    nothing = torch.full((3, 4), -torch.inf, dtype=torch.float64)
    rows, columns = x.indices()
    nothing[rows, columns] = x.values()
    for sparse, dense in [
        (torch.sparse.softmax, torch.softmax),
        (torch.sparse.log_softmax, torch.log_softmax),
    ]:
        result = sparse(x, dim)
        assert result.layout is torch.sparse_coo
        assert torch.equal(result.indices(), x.indices())
        assert torch.allclose(result.values(), dense(nothing, dim)[rows, columns])
        single = sparse(x.to(torch.float32), dim, dtype=torch.float64)
        assert torch.allclose(single.values(), result.values())

        def of_values(values: Any, sparse: Any = sparse) -> Any:
            return sparse(torch.sparse_coo_tensor(x.indices(), values, (3, 4)), dim).values()

        values = x.values().clone().requires_grad_()
        assert gradcheck(of_values, values, check_forward_ad=True)
        assert gradgradcheck(of_values, values)


def test_softmax_of_dense_dimensions_and_of_nothing() -> None:
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    hybrid = torch.sparse_coo_tensor([[0, 2]], values, (3, 2))
    assert torch.equal(torch.sparse.softmax(hybrid, 1).values(), values.softmax(1))
    assert torch.allclose(torch.sparse.softmax(hybrid, 0).values(), values.softmax(0))
    twice = torch.sparse_coo_tensor([[0, 0, 0], [1, 1, 2]], [1.0, 2.0, 3.0], (2, 3))
    assert torch.sparse.softmax(twice, 1).values().tolist() == [0.5, 0.5]
    empty = torch.sparse_coo_tensor((3, 4))
    assert torch.sparse.softmax(empty, 1)._nnz() == 0
    leaf = specified().requires_grad_()
    torch.sparse.log_softmax(leaf, 1).to_dense().sum().backward()
    assert leaf.grad.layout is torch.sparse_coo
    for refused, error in [
        (lambda: torch.sparse.softmax(specified(), 2), IndexError),
        (lambda: torch.sparse.softmax(specified().to_sparse_csr(), 1), NotImplementedError),
        (lambda: torch.sparse.softmax(torch.ones(2, 2), 1), NotImplementedError),
        (lambda: torch.sparse.softmax(specified().to(torch.int64), 1), NotImplementedError),
    ]:
        with pytest.raises(error):
            refused()


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_of_a_row_are_joined_as_asked(reduce: str) -> None:
    x = specified().to_sparse_csr()
    y = torch.arange(8.0, dtype=torch.float64).view(4, 2) - 3
    products = specified().to_dense().unsqueeze(2) * y
    is_specified = torch.zeros(3, 4, dtype=torch.bool)
    is_specified[tuple(specified().indices())] = True
    expected = torch.zeros(3, 2, dtype=torch.float64)
    for row in (0, 2):
        there = products[row][is_specified[row]]
        expected[row] = getattr(there, reduce)(dim=0)
    result = torch.sparse.mm(x, y, reduce)
    assert torch.allclose(result, expected)
    assert torch.sparse.mm(x.to(torch.float16), y.half(), reduce).dtype is torch.float16

    def of_parts(values: Any, y: Any) -> Any:
        rows = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, (3, 4))
        return torch.sparse.mm(rows, y, reduce)

    inputs = (x.values().clone().requires_grad_(), y.clone().requires_grad_())
    assert gradcheck(of_parts, inputs, check_forward_ad=True)
    assert gradgradcheck(of_parts, inputs)
    leaf = x.detach().clone().requires_grad_()
    torch.sparse.mm(leaf, y, reduce).sum().backward()
    assert leaf.grad.layout is torch.sparse_csr


def test_products_of_rows_refuse_what_they_cannot_join() -> None:
    x, y = specified().to_sparse_csr(), torch.ones(4, 2, dtype=torch.float64)
    for call, error, phrase in [
        (lambda: torch.sparse.mm(x, y, "prod"), RuntimeError, "prod has not been enabled"),
        (lambda: torch.sparse.mm(specified(), y, "amax"), NotImplementedError, "SparseCsr"),
        (lambda: torch.sparse.mm(x, x.t(), "amax"), NotImplementedError, "Strided"),
        (lambda: torch.sparse.mm(x, y[:3], "amax"), RuntimeError, "cannot be multiplied"),
        (lambda: torch.sparse.mm(x, y.float(), "amax"), RuntimeError, "same dtype"),
        (
            lambda: torch.sparse.mm(x.to(torch.int64), y.long(), "amax"),
            NotImplementedError,
            "spmm_reduce_kernel",
        ),
    ]:
        with pytest.raises(error, match=phrase):
            call()


def test_products_that_stay_sparse_specify_the_rows_that_the_first_one_does() -> None:
    x, y = specified(), torch.arange(8.0, dtype=torch.float64).view(4, 2) - 3
    expected = x.to_dense() @ y
    rows = torch.hspmm(x, y)
    assert (rows.sparse_dim(), rows.dense_dim(), rows._nnz()) == (1, 1, 2)
    listed = torch.smm(x, y)
    assert (listed.sparse_dim(), listed._nnz()) == (2, 4)
    added = torch.sspaddmm(listed, x, y, beta=2, alpha=3)
    assert torch.equal(rows.to_dense(), expected)
    assert torch.equal(listed.to_dense(), expected)
    assert torch.equal(added.to_dense(), 5 * expected)
    assert torch.equal(x.smm(y).to_dense(), expected)
    assert torch.equal(listed.sspaddmm(x, y).to_dense(), 2 * expected)
    nothing = torch.sparse_coo_tensor((3, 4), dtype=torch.float64)
    assert torch.hspmm(nothing, y)._nnz() == torch.smm(nothing, y)._nnz() == 0
    whole = torch.smm(x.to(torch.int64), y.long())
    assert torch.equal(whole.to_dense(), x.to(torch.int64).to_dense() @ y.long())
    for call, phrase in [
        (lambda: torch.hspmm(x, y[:3]), "Expected dim 0 size 4, got 3"),
        (lambda: torch.smm(x, y.float()), "expected scalar type Double but found Float"),
        (lambda: torch.smm(y, y), "sparse coordinate tensor layout"),
        (lambda: torch.smm(x, x.t()), "expected 'mat2' to have strided layout"),
        (lambda: torch.hspmm(rows, y), "matrices expected, got 1D tensor"),
        (lambda: torch.sspaddmm(x, x, y), "Argument #1"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            call()


@pytest.mark.parametrize("name", LAYOUTS)
def test_parts_are_validated_as_the_constructor_does(name: str) -> None:
    x = laid_out(example(), name)
    if name == "sparse_coo":
        parts = (x.indices(), x.values(), x.shape)
        torch._validate_sparse_coo_tensor_args(*parts, is_coalesced=True)
        turned = (x.indices().flip(1), x.values(), x.shape)
        with pytest.raises(RuntimeError, match="uncoalesced COO tensor"):
            torch._validate_sparse_coo_tensor_args(*turned, is_coalesced=True)
        with pytest.raises(RuntimeError):
            torch._validate_sparse_coo_tensor_args(x.indices(), x.values()[1:], x.shape)
        return
    by_rows = name in ("sparse_csr", "sparse_bsr")
    first = x.crow_indices() if by_rows else x.ccol_indices()
    second = x.col_indices() if by_rows else x.row_indices()
    torch._validate_sparse_compressed_tensor_args(first, second, x.values(), x.shape, x.layout)
    validate = getattr(torch, f"_validate_{name}_tensor_args")
    validate(first, second, x.values(), x.shape)
    with pytest.raises(RuntimeError):
        validate(first, second + 9, x.values(), x.shape)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_strided_layout_may_be_asked_for(name: str) -> None:
    dense = example()
    assert torch.equal(laid_out(dense, name).to_sparse(layout=torch.strided), dense)
    assert torch.equal(dense.to_sparse(layout=torch.strided), dense)


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("other", COMPRESSED)
def test_conversions_keep_the_dtype_of_indices(name: str, other: str) -> None:
    x = laid_out(example(), name)
    by_rows = name in ("sparse_csr", "sparse_bsr")
    first = x.crow_indices() if by_rows else x.ccol_indices()
    second = x.col_indices() if by_rows else x.row_indices()
    parts = (first.int(), second.int(), x.values(), x.shape)
    short = torch.sparse_compressed_tensor(*parts, layout=x.layout)
    blocks = (1, 2) if other in ("sparse_bsr", "sparse_bsc") else None
    turned = short.to_sparse(layout=getattr(torch, other), blocksize=blocks)
    by_rows = other in ("sparse_csr", "sparse_bsr")
    assert (turned.crow_indices() if by_rows else turned.ccol_indices()).dtype is torch.int32
    assert torch.equal(turned.to_dense(), example())


def test_blocks_stay_of_their_size_in_the_other_order() -> None:
    x = laid_out(example(), "sparse_bsr")
    assert torch.zeros_like(x, layout=torch.sparse_bsc).layout is torch.sparse_bsc


@pytest.mark.parametrize("name", COMPRESSED)
def test_random_values_stand_in_the_same_places(name: str) -> None:
    x = laid_out(example(), name)
    torch.manual_seed(0)
    drawn = torch.randn_like(x)
    torch.manual_seed(0)
    assert torch.equal(drawn.values(), torch.randn_like(x.values()))
    assert drawn.layout is x.layout
    assert torch.randn_like(x, dtype=torch.float32).dtype is torch.float32


@pytest.mark.parametrize("name", LAYOUTS)
def test_infinities_are_found_among_the_values(name: str) -> None:
    dense = example()
    dense[0, 1], dense[1, 0] = torch.inf, -torch.inf
    x = laid_out(dense, name)
    assert torch.equal(torch.isposinf(x).to_dense(), dense == torch.inf)
    assert torch.equal(torch.isneginf(x).to_dense(), dense == -torch.inf)


def test_a_range_of_indices_is_copied() -> None:
    dense = torch.arange(24.0).reshape(4, 3, 2) % 5
    for sparse_dim in (1, 2, 3):
        x = dense.to_sparse(sparse_dim)
        for dim, start, length in ((0, 1, 2), (1, -2, 2), (2, 1, 0), (0, 0, 4)):
            found = x.narrow_copy(dim, start, length)
            assert torch.equal(found.to_dense(), dense.narrow_copy(dim, start, length))
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        dense.to_sparse().narrow_copy(0, 3, 2)


def test_what_specifies_nothing_adds_to_everything() -> None:
    hybrid = torch.ones(2, 3).to_sparse(1)
    nothing = torch.sparse_coo_tensor((2, 3))
    for found in (hybrid + nothing, nothing + hybrid):
        assert torch.equal(found.to_dense(), torch.ones(2, 3))
    assert torch.equal(torch.add(nothing, hybrid, alpha=2).to_dense(), torch.full((2, 3), 2.0))
    with pytest.raises(RuntimeError, match="same number of sparse dimensions"):
        torch.ones(2, 3).to_sparse() + hybrid


def test_a_number_that_is_sparse_multiplies_too() -> None:
    x = example().to_sparse()
    for number in (torch.tensor(3.0).to_sparse(), torch.sparse_coo_tensor(())):
        expected = example() * number.to_dense()
        assert torch.equal((x * number).to_dense(), expected)
        assert torch.equal((number * x).to_dense(), expected)


@pytest.mark.parametrize("size", [(1,), (), (1, 1, 1)])
def test_the_sizes_of_blocks_are_two(size: tuple[int, ...]) -> None:
    x = torch.ones(4, 4)
    calls: list[Callable[[], Any]] = [
        lambda: x.to_sparse(blocksize=size),  # type: ignore[arg-type]
        lambda: x.to_sparse(layout=torch.sparse_bsr, blocksize=size),  # type: ignore[arg-type]
        lambda: x.to_sparse_bsr(size),  # type: ignore[arg-type]
        lambda: x.to_sparse_bsc(list(size)),
    ]
    for call in calls:
        with pytest.raises(
            RuntimeError, match=f"blocksize needs to be a tuple of size 2, but got {len(size)}"
        ):
            call()
    assert x.to_sparse_bsr(2).values().shape == (4, 2, 2)
