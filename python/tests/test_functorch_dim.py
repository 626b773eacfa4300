"""First-class dimensions: binding, ops along them, order, packs, writing, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.functorch import dim as fd
from pullback.functorch.dim import (
    Dim,
    DimensionBindError,
    DimList,
    cat,
    dimlists,
    dims,
    split,
    stack,
)


def numbers(*shape: int) -> Any:
    size = 1
    for n in shape:
        size *= n
    return torch.arange(float(size)).reshape(shape)


def test_dimensions_are_named_as_the_variables_they_are_assigned_to() -> None:
    i, j = dims()
    k = dims()
    (m,) = dims()
    assert [repr(dim) for dim in (i, j, k, m)] == ["i", "j", "k", "m"]
    assert repr(dims(2)) == "(d0, d1)"
    assert dims(sizes=[3]).size == 3
    assert dims(0) == ()
    with pytest.raises(SyntaxError, match="must be assigned to a sequence of variable names"):
        dims()
    with pytest.raises(ValueError, match="expected 3 sizes but found 1"):
        dims(3, [1])


def test_a_dimension_has_the_size_of_what_it_was_bound_to_first() -> None:
    i, j = dims()
    with pytest.raises(ValueError, match="dimension i is unbound"):
        _ = i.size
    assert not i.is_bound
    x = numbers(2, 3)[i, j]
    assert (i.size, j.size) == (2, 3)
    assert x.dims[0] is i
    assert x.dims[1] is j
    assert (x.ndim, x.shape, x.dtype) == (0, torch.Size([]), torch.float32)
    with pytest.raises(DimensionBindError, match="'i' previously bound to a dimension of size 2"):
        numbers(3)[i]
    with pytest.raises(ValueError, match="at least 3 indices were supplied but the tensor only"):
        numbers(2, 3)[i, j, 0]


def test_order_makes_dimensions_positional() -> None:
    i, j, k = dims()
    a = numbers(2, 3, 4)
    x = a[i, j, k]
    assert torch.equal(x.order(k, i, j), a.permute(2, 0, 1))
    assert torch.equal(x.order((i, k), j), a.permute(0, 2, 1).reshape(8, 3))
    assert torch.equal(a[i, :, k].order(k, i), a.permute(2, 0, 1))
    assert torch.equal(a[i].order(-1, i), a.permute(2, 0, 1))
    partly = x.order(j)
    assert [dim is other for dim, other in zip(partly.dims, (i, k), strict=True)] == [True, True]
    assert partly.shape == torch.Size([3])
    with pytest.raises(ValueError, match="does not contain dim i or it was specified twice"):
        x.order(i, i)
    with pytest.raises(ValueError, match="tensor has 0 positional dimensions, but -1 specified"):
        x.order(-1)


def test_ops_compute_for_every_combination_of_dimensions() -> None:
    i, j, k = dims()
    a, b = numbers(2, 3), numbers(3, 4)
    product = (a[i, j] * b[j, k]).sum(j)
    assert torch.equal(product.order(i, k), a @ b)
    assert torch.equal((a[i, j] * b[j, k]).order(i, j, k), a[:, :, None] * b)
    assert torch.equal((a[i, j] + 1).order(j, i), a.T + 1)
    assert torch.equal((2 - a[i, j]).order(i, j), 2 - a)
    assert torch.equal(torch.matmul(a[i], b).order(i), a @ b)
    assert torch.equal(torch.nn.functional.linear(a[i], b.T).order(i), a @ b)
    # What is left without first-class dimensions is a plain tensor.
    assert isinstance(a[i, j].sum((i, j)), torch.Tensor)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmin", "prod", "logsumexp", "std"])
def test_reductions_take_dimensions_where_they_take_numbers(name: str) -> None:
    i, j = dims()
    a = numbers(4, 5).sin()
    reduce = getattr(torch.Tensor, name)
    assert torch.equal(getattr(a[i, j], name)(i).order(j), reduce(a, 0))
    assert torch.equal(getattr(torch, name)(a[i, j], dim=j).order(i), reduce(a, 1))
    # Positional dimensions keep their numbers.
    assert torch.equal(getattr(a[i], name)(0).order(i), reduce(a, 1))


def test_ops_that_keep_a_dimension_keep_it_first_class() -> None:
    i, j = dims()
    a = numbers(4, 5).sin()
    x = a[i, j]
    assert torch.allclose(torch.softmax(x, dim=i).order(i, j), a.softmax(0))
    assert torch.allclose(torch.nn.functional.softmax(x, dim=j).order(i, j), a.softmax(1))
    assert torch.equal(x.cumsum(i).order(i, j), a.cumsum(0))
    values, indices = x.sort(j)
    assert torch.equal(values.order(i, j), a.sort(1).values)
    assert torch.equal(indices.order(i, j), a.sort(1).indices)
    assert [torch.equal(p.order(j), q) for p, q in zip(x.unbind(i), a, strict=True)] == [True] * 4
    with pytest.raises(ValueError, match="cannot preserve first-class dimensions with keepdim"):
        x.sum(i, keepdim=True)
    with pytest.raises(ValueError, match="does not contain k"):
        x.sum(Dim("k"))


def test_a_dimension_is_the_tensor_of_its_indices() -> None:
    i, j = dims(sizes=[3, 4])
    assert torch.equal((i + 10 * j).order(i, j), torch.arange(3)[:, None] + 10 * torch.arange(4))
    mask = torch.where(i >= j, 1.0, 0.0).order(i, j)
    assert torch.equal(mask, torch.ones(3, 4).tril())
    assert i.dtype is torch.int64
    assert torch.equal(i.expand(j).order(j, i), torch.arange(3).expand(4, 3))
    assert len({i, j}) == 2
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        bool(i == j)


def test_indices_may_be_computed_from_dimensions() -> None:
    i, j, k = dims()
    a = numbers(5, 4)
    table = torch.tensor([[0, 3], [2, 2], [4, 1]])
    rows = a[table[i, j], k]
    assert torch.equal(rows.order(i, j, k), a[table])
    assert torch.equal(rows.sum(j).order(i, k), a[table].sum(1))
    n, w = dims(sizes=[3, 3])
    assert torch.equal(a[n + w, 0].order(n, w), a[:, 0].unfold(0, 3, 1))
    assert torch.equal(a[table[i, j], table[i, j] % 4].order(i, j), a[table, table % 4])
    d = dims()
    assert torch.equal(numbers(3, 3)[d, d].order(d), numbers(3, 3).diag())


def test_a_pack_splits_a_dimension() -> None:
    i, j, k = dims()
    a = numbers(6, 4)
    i.size = 2
    x = a[(i, j), k]
    assert j.size == 3
    assert torch.equal(x.order(j, i, k), a.reshape(2, 3, 4).permute(1, 0, 2))
    assert torch.equal(x.order((i, j), k), a)
    with pytest.raises(DimensionBindError, match="cannot infer the sizes of two dimensions"):
        a[((Dim("p"), Dim("q")),)]
    with pytest.raises(DimensionBindError, match="does not evenly fit into larger dimension"):
        a[((Dim("p", 4), Dim("q")),)]
    with pytest.raises(DimensionBindError, match="6 != 8"):
        a[((Dim("p", 4), Dim("q", 2)),)]


def test_lists_of_dimensions_stand_for_as_many_as_there_are() -> None:
    batch = dimlists()
    k = dims()
    a = numbers(2, 3, 4)
    assert repr(batch) == "*batch"
    x = a[batch, k]
    assert (len(batch), repr(batch)) == (2, "(batch0, batch1)")
    assert torch.equal(x.sum(k).order(batch), a.sum(2))
    assert torch.equal(x.sum(batch).order(k), a.sum((0, 1)))
    assert torch.equal(x.order((batch, k)), a.reshape(-1))
    with pytest.raises(DimensionBindError, match="has size 2 but it is being bound to size 3"):
        batch.bind_len(3)
    named = DimList(name="n")
    named.bind([2, 5])
    assert [dim.size for dim in named] == [2, 5]
    with pytest.raises(DimensionBindError, match="at most one"):
        a[..., dimlists(1)]


def test_tensors_are_stacked_joined_and_cut_along_dimensions() -> None:
    i, j, k = dims()
    a = numbers(2, 3)
    x = a[i, j]
    assert torch.equal(stack([x, x + 1], k).order(k, i, j), torch.stack([a, a + 1]))
    n = dims()
    assert torch.equal(cat([x, -x], i, n).order(n, j), torch.cat([a, -a]))
    p, q = dims()
    q.size = 1
    left, right = split(x, [p, q], j)
    assert p.size == 2
    assert torch.equal(left.order(i, p), a[:, :2])
    assert torch.equal(right.order(i, q), a[:, 2:])
    r, s = dims(sizes=[1, None])
    assert torch.equal(a.split([r, s], dim=1)[1].order(s), a[:, 1:].T)
    with pytest.raises(TypeError, match="split sizes must also be dimensions"):
        x.split(2, j)
    with pytest.raises(DimensionBindError, match="the original size is 3"):
        split(x, [Dim("u", 2), Dim("v", 2)], j)


def test_index_takes_dimensions_away() -> None:
    i, j = dims()
    a = numbers(2, 3)
    x = a.index((0, 1), (i, j))
    assert torch.equal(x.order(i, j), a)
    assert torch.equal(x.index(i, 1).order(j), a[1])
    assert x.index((i, j), (1, 2)).item() == 5.0
    assert torch.equal(x.index([j], [torch.tensor([2, 0])]).order(i), a[:, [2, 0]])
    assert torch.equal(a.index(1, j).order(j), a.T)
    with pytest.raises(ValueError, match="does not contain dim i"):
        a.index(i, 0)


def test_values_are_written_along_dimensions() -> None:
    i, j = dims(sizes=[3, 4])
    w = torch.zeros(3, 4)
    w[i, j] = i * 10 + j
    assert torch.equal(w, torch.arange(3)[:, None] * 10.0 + torch.arange(4))
    w[j * 0, j] = -j.float()
    assert torch.equal(w[0], -torch.arange(4.0))
    w[i, 0] = 7
    assert torch.equal(w[:, 0], torch.full((3,), 7.0))
    w[i].add_(1)
    assert w[2, 0] == 8
    with pytest.raises(ValueError, match="the value has dimension j"):
        w[i, 0] = j


def test_gradients_pass_through_dimensions() -> None:
    i, j, k = dims()
    a, b = numbers(2, 3).requires_grad_(), numbers(3, 4).requires_grad_()
    (a[i, j] * b[j, k]).sum(j).exp().mul(1e-9).sum((i, k)).backward()
    got = (a.grad, b.grad)
    c, d = a.detach().requires_grad_(), b.detach().requires_grad_()
    (c @ d).exp().mul(1e-9).sum().backward()
    assert all(torch.allclose(g, w.grad) for g, w in zip(got, (c, d), strict=True))


def test_dimensions_work_within_vmap_and_modules() -> None:
    i = dims()
    f = torch.vmap(lambda row: (row[i] * 2).order(i))
    assert torch.equal(f(numbers(2, 4)), numbers(2, 4) * 2)
    layer = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.LayerNorm(3))
    batch = dims()
    x = numbers(5, 4)
    assert torch.allclose(layer(x[batch]).order(batch), layer(x), atol=1e-6)


def test_attention_is_written_with_dimensions() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 5, 3, 4) for _ in range(3))
    b, s, t, h, e = dims()
    scores = (q[b, s, h, e] * k[b, t, h, e]).sum(e) / 4**0.5
    scores = torch.where(s >= t, scores, float("-inf"))
    out = (scores.softmax(t) * v[b, t, h, e]).sum(t).order(b, s, (h, e))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(out, want.transpose(1, 2).reshape(2, 5, 12), atol=1e-6)


def test_a_product_that_is_summed_is_never_held() -> None:
    i, j, k = dims()
    n = 1 << 12
    # (The product would have 2^36 elements.)
    x = (torch.ones(n, n)[i, j] * torch.ones(n, n)[j, k]).sum(j)
    assert x.order(i, k)[0, 0] == n


def test_the_names_of_the_module() -> None:
    assert set(fd.__all__) <= set(dir(fd))
    assert torch.functorch.dim is fd
    assert issubclass(Dim, fd._Tensor)
    assert not isinstance(Dim("i", 2), torch.Tensor)
