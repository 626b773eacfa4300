"""Conjugates and negatives are views of the same memory, until somebody resolves them."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import forward_ad

NUMBERS = [1 + 2j, 3 - 4j]
CONJUGATES = [1 - 2j, 3 + 4j]


def numbers() -> torch.Tensor:
    return torch.tensor(NUMBERS)


def bits(t: torch.Tensor) -> tuple[bool, bool]:
    return t.is_conj(), t.is_neg()


def test_conj_is_a_view_with_a_bit() -> None:
    x = numbers()
    y = x.conj()
    assert bits(x) == (False, False)
    assert bits(y) == (True, False)
    assert y._base is x
    assert y._is_view()
    assert y.data_ptr() == x.data_ptr()
    assert y.tolist() == CONJUGATES
    assert y[1].item() == complex(y[1]) == CONJUGATES[1]
    assert bits(y.conj()) == (False, False)
    assert torch.is_conj(y)
    assert not torch.is_neg(y)
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", ["H", "mH", "adjoint"])
def test_conjugate_transposes_are_views(name: str) -> None:
    x = torch.randn(2, 2, dtype=torch.complex64)
    y = getattr(x, name)
    y = y() if callable(y) else y
    assert y.is_conj()
    assert y._base is x
    assert y.tolist() == x.numpy().conj().T.tolist()


def test_real_tensors_are_given_as_they_are() -> None:
    for x in (torch.ones(2), torch.tensor([1, 2]), torch.tensor([True])):
        assert x.conj() is x
        assert x.resolve_conj() is x
        assert x.resolve_neg() is x
        assert x.conj_physical() is x
        assert x.conj_physical_() is x
    assert torch.ones(2, requires_grad=True).conj().grad_fn is None
    assert torch.conj_physical(torch.ones(2), out=torch.zeros(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="_conj"):
        torch._conj(torch.ones(2))


def test_resolving_gives_the_tensor_itself_unless_there_is_something_to_resolve() -> None:
    x = numbers()
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    y = x.conj()
    assert y.resolve_neg() is y
    assert bits(y.resolve_conj()) == (False, False)
    assert y.resolve_conj().tolist() == CONJUGATES
    both = y._neg_view()
    assert bits(both) == (True, True)
    for resolved in (both.resolve_conj(), both.resolve_neg(), both.clone()):
        assert bits(resolved) == (False, False)
        assert resolved.tolist() == [-z for z in CONJUGATES]


def test_parts_of_conjugates_are_views() -> None:
    x = numbers()
    y = x.conj()
    assert bits(y.real) == (False, False)
    assert bits(y.imag) == (False, True)
    assert y.imag._base is x
    assert y.imag.tolist() == [-2.0, 4.0]
    assert y.imag[0].item() == -2.0
    assert float(y.imag[1]) == 4.0
    y.imag.fill_(7)
    assert x.tolist() == [1 - 7j, 3 - 7j]
    y.imag = torch.tensor([1.0, 2.0])
    assert x.tolist() == [1 - 1j, 3 - 2j]
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated"):
        torch.view_as_real(y)
    pairs = torch.view_as_real(x._neg_view())
    assert bits(pairs) == (False, True)
    assert pairs.tolist() == [[-1, 1], [-3, 2]]
    assert bits(torch.view_as_complex(pairs)) == (False, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_other_dtypes_cannot_be_seen_in_unresolved_memory(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        numbers().conj().view(dtype)
    with pytest.raises(RuntimeError, match="tensors with negative bit set"):
        torch.ones(2)._neg_view().view(torch.int32)


def test_writes_go_through_and_are_counted_once() -> None:
    x = numbers()
    y = x.conj()
    y.mul_(2j)
    assert y.tolist() == [4 + 2j, -8 + 6j]
    assert x.tolist() == [4 - 2j, -8 - 6j]
    assert x._version == y._version == 1
    y[0] = 5j
    assert x[0].item() == -5j
    x.mul_(x.conj())
    assert x.tolist() == [25, 100]
    x = numbers()
    assert x.copy_(x.conj()).tolist() == CONJUGATES
    out = torch.zeros(2, dtype=torch.complex64)
    given = out.conj()
    assert torch.mul(x, x, out=given) is given
    assert given.tolist() == [z * z for z in CONJUGATES]
    assert out.tolist() == [(z * z).conjugate() for z in CONJUGATES]
    grown = torch.zeros(0, dtype=torch.complex64).conj()
    assert torch.add(x, 1, out=grown).tolist() == [z + 1 for z in CONJUGATES]
    assert grown.is_conj()


def test_what_cannot_be_written_leaves_a_view_as_it_was() -> None:
    x = numbers()
    with pytest.raises(RuntimeError):
        x.conj().add_(torch.ones(3))
    with pytest.raises(RuntimeError):
        x.conj().imag.mul_(1j)
    assert x.tolist() == NUMBERS
    assert x._version == 0


def test_views_of_a_conjugate_have_its_bit() -> None:
    x = torch.randn(2, 3, dtype=torch.complex64).conj()
    plain = x.resolve_conj()
    for f in (
        lambda t: t[1],
        lambda t: t[:, ::2],
        lambda t: t.T,
        lambda t: t.reshape(3, 2),
        lambda t: t.flatten(),
        lambda t: t.expand(4, 2, 3),
        lambda t: t.as_strided((2,), (3,), 1),
        lambda t: t.unfold(1, 2, 1),
        lambda t: t.diagonal(),
        lambda t: t.squeeze(),
        lambda t: t.unbind(1)[2],
        lambda t: t.chunk(2)[1],
        lambda t: t.split([1, 2], 1)[1],
        lambda t: t.movedim(0, 1),
        lambda t: t.detach(),
        lambda t: t.data,
        lambda t: torch.Tensor(t) if t.dtype is torch.float32 else t.view_as(t),
    ):
        view = f(x)
        assert view.is_conj()
        assert torch.equal(view, f(plain))
    copied = torch.randn(2, 3, dtype=torch.complex64).mH
    assert not copied.contiguous().is_conj()
    assert not copied.reshape(6).is_conj()
    assert x.contiguous() is x
    assert not (x + 1).is_conj()
    assert not torch.cat([x, x]).is_conj()
    assert not torch.empty_like(x).is_conj()
    assert not x.new_zeros(2).is_conj()
    assert not x.to(torch.complex128).is_conj()
    assert not x.to(copy=True).is_conj()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.imag.to(torch.float64).tolist() == plain.imag.tolist()
        assert x.to(torch.float32).tolist() == plain.real.tolist()


def test_reshaping_in_place_keeps_the_bit() -> None:
    x = torch.randn(2, 3, dtype=torch.complex64)
    y = x.conj()
    expected = x.numpy().conj()
    assert y.t_().is_conj()
    assert y.tolist() == expected.T.tolist()
    assert y.unsqueeze_(0).squeeze_(0).is_conj()
    z = x.clone().conj()
    assert z.resize_(3).is_conj()
    assert z.tolist() == expected.reshape(-1)[:3].tolist()


def test_memory_is_refused_where_its_bits_would_be_lost() -> None:
    x = numbers()
    for give in (lambda t: t.numpy(), np.asarray):
        with pytest.raises(RuntimeError, match=r"conjugate bit set. Use tensor.resolve_conj\(\)"):
            give(x.conj())
        with pytest.raises(RuntimeError, match=r"negative bit set. Use tensor.resolve_neg\(\)"):
            give(x.conj().imag)
    assert x.conj().numpy(force=True).tolist() == CONJUGATES
    for view in (x.conj(), x.conj().imag):
        with pytest.raises(BufferError, match="Can't export tensors with the"):
            view.__dlpack__()
        with pytest.raises(BufferError, match="Can't export tensors with the"):
            torch.from_dlpack(view)
    with pytest.warns(UserWarning, match="copy construct"):
        assert torch.tensor(x.conj()).tolist() == CONJUGATES
    assert torch.tensor([x.conj().imag[0], 1.0]).tolist() == [-2.0, 1.0]
    assert torch.as_tensor(x.conj()).is_conj()


def test_memory_is_taken_over_as_the_tensor_says() -> None:
    x = numbers()
    y = torch.zeros(2, dtype=torch.complex64)
    y.data = x.conj()
    assert y.is_conj()
    assert y.tolist() == CONJUGATES
    # `set_` is about memory: bits stay with their tensor.
    z = torch.zeros(2, dtype=torch.complex64)
    assert z.set_(x.conj()).tolist() == NUMBERS
    assert torch.zeros(2, dtype=torch.complex64).conj().set_(x).tolist() == CONJUGATES
    assert not x.conj().is_set_to(x)
    assert x.conj().is_set_to(x.conj())
    assert torch.nn.Parameter(x.conj()).is_conj()


def test_pickles_keep_the_bits_and_deep_copies_resolve() -> None:
    x = numbers()
    for view in (x.conj(), x.conj().imag, x.conj()._neg_view()):
        again = pickle.loads(pickle.dumps(view))
        assert bits(again) == bits(view)
        assert again.tolist() == view.tolist()
        assert again._base is None
        assert again.is_leaf
        copied = copy.deepcopy(view)
        assert bits(copied) == (False, False)
        assert copied.tolist() == view.tolist()
        shared = copy.copy(view)
        assert bits(shared) == bits(view)
        assert shared.data_ptr() == view.data_ptr()
    first, second = pickle.loads(pickle.dumps((x, x.conj())))
    first.fill_(1j)
    assert second.tolist() == [-1j, -1j]
    assert copy.deepcopy(torch.nn.Parameter(x.conj())).tolist() == CONJUGATES


def test_printing_shows_what_the_tensor_shows() -> None:
    x = numbers()
    assert repr(x.conj()) == "tensor([1.-2.j, 3.+4.j])"
    assert repr(x.conj().imag) == "tensor([-2.,  4.])"
    assert "grad_fn=<ConjBackward0>" in repr(x.requires_grad_().conj())


def name_of(t: torch.Tensor) -> str:
    assert t.grad_fn is not None
    return t.grad_fn.name()


def test_the_graph_has_nodes_for_views_and_for_copies() -> None:
    x = numbers().requires_grad_()
    assert name_of(x.conj()) == "ConjBackward0"
    assert name_of(x._neg_view()) == "NegViewBackward0"
    assert name_of(x.conj_physical()) == "ConjPhysicalBackward0"
    assert name_of(x.conj().resolve_conj()) == name_of(x.conj().clone()) == "CloneBackward0"
    assert name_of(x.conj().imag) == "SelectBackward0"
    for f in (lambda t: t.conj(), lambda t: t.conj_physical(), lambda t: t.conj().clone()):
        (grad,) = torch.autograd.grad(f(x), x, torch.tensor([1j, 2 + 1j]))
        assert grad.tolist() == [-1j, 2 - 1j]
    x.conj().backward(torch.tensor([1j, 2 + 1j]))
    assert x.grad is not None
    # What is kept can be seen as real numbers and as an array.
    assert torch.view_as_real(x.grad).tolist() == [[0, -1], [2, -1]]
    assert x.grad.numpy().tolist() == [-1j, 2 - 1j]


def test_gradcheck_passes_through_views_and_writes() -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        y = z.clone()
        y.conj()[0].mul_(2j)
        y.mH.imag[0].pow_(2)
        y.conj().copy_(y.conj().clone() * z.conj().imag._neg_view())
        return y * y.H

    z = torch.randn(2, 2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(function, (z,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (z,))


def test_writes_through_views_of_a_base_with_a_bit_are_recorded() -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        base = torch.zeros(2, dtype=torch.complex128).conj().detach()
        base.copy_(z)
        base.imag.mul_(3)
        base[0].conj().real.mul_(z[1].imag)
        assert base.is_conj()
        assert base._base is None
        return base * 1j

    z = torch.randn(2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(function, (z,), check_forward_ad=True)


def test_views_of_conjugates_are_made_again_of_other_bases() -> None:
    base, other = torch.randn(3, dtype=torch.complex64), torch.randn(3, dtype=torch.complex64)
    view = base.conj()[1:]
    again = view._view_func(other)
    assert again is not None
    assert again.is_conj()
    assert torch.equal(again, other.conj()[1:])
    assert view._view_func(other.conj()) is None


def test_tangents_have_the_bits_of_their_tensors() -> None:
    x, t = numbers(), torch.tensor([1j, 2])
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, t).conj()).tangent
        assert tangent.tolist() == [-1j, 2]
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x.conj(), t)).tangent
        assert tangent.is_conj()
        assert tangent.tolist() == [1j, 2]


def test_vmap_sees_conjugates_as_views() -> None:
    seen = []

    def one(row: torch.Tensor) -> Any:
        seen.append(bits(row.conj()))
        row.conj().add_(1j)
        return row.conj(), row.conj().imag

    x = numbers().reshape(2, 1)
    out, imag = torch.vmap(one)(x)
    assert seen == [(True, False)]
    assert out.is_conj()
    assert x.reshape(2).tolist() == [1 + 1j, 3 - 5j]
    assert out.reshape(2).tolist() == [1 - 1j, 3 + 5j]
    assert imag.reshape(2).tolist() == [-1.0, 5.0]


def test_functionalized_programs_give_the_same() -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        y = z.clone()
        y.conj().imag.add_(2.0)
        return y.conj() * z

    x = numbers()
    assert torch.equal(torch.func.functionalize(function)(x), function(x))


def test_sparse_tensors_conjugate_their_values() -> None:
    s = torch.sparse_coo_tensor([[0, 1]], numbers(), (2,))
    assert not s.conj().is_conj()
    assert s.conj().to_dense().tolist() == CONJUGATES
    values = s.coalesce().values().conj()
    assert values.is_conj()
    assert values.tolist() == CONJUGATES
    of_view = torch.sparse_coo_tensor([[0, 1]], numbers().conj(), (2,))
    assert of_view.to_dense().tolist() == CONJUGATES
    assert numbers().conj().to_sparse().to_dense().tolist() == CONJUGATES
    matrix = torch.randn(2, 2, dtype=torch.complex64)
    product = torch.sparse.mm(matrix.to_sparse(), matrix.mH)
    assert torch.allclose(product, matrix @ matrix.mH.resolve_conj())


def test_optimizers_read_and_write_views() -> None:
    memory = torch.tensor([1.0, -2.0])
    for kind in (torch.optim.SGD, torch.optim.Adam):
        plain = (-memory).clone().requires_grad_()
        view = memory.clone()._neg_view().requires_grad_()
        grad = torch.tensor([0.5, 1.0])
        for parameter, grads in ((plain, grad), (view, (-grad)._neg_view())):
            optimizer = kind([parameter], lr=0.1, fused=True)
            parameter.grad = grads
            optimizer.step()
            assert parameter._version == 1
        assert view.is_neg()
        assert torch.equal(view, plain)


def test_running_statistics_are_written_through_views() -> None:
    x = torch.randn(8, 3)
    plain = [torch.zeros(3), torch.ones(3)]
    memory = [torch.zeros(3), -torch.ones(3)]
    shown = [t._neg_view() for t in memory]
    for mean, var in (plain, shown):
        torch.nn.functional.batch_norm(x, mean, var, training=True)
    for expected, got, stored in zip(plain, shown, memory, strict=True):
        assert torch.equal(got, expected)
        assert torch.equal(stored, -expected)
