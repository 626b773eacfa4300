"""Forward mode from Python: levels, duals, modes, custom functions, what else meets tangents.

Rules, views and writes are tested in Rust: ``forward.rs`` and ``properties.rs`` of the library.
"""

from __future__ import annotations

import copy
import gc
import math
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
import pullback.autograd.forward_ad as fwad
from pullback.autograd import Function, grad, gradcheck, gradgradcheck
from pullback.utils.checkpoint import checkpoint

F64 = torch.float64


@pytest.fixture(autouse=True)
def no_level_is_left() -> Iterator[None]:
    yield
    left = fwad._current_level >= 0
    while fwad._current_level >= 0:
        fwad.exit_dual_level()
    assert not left


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=F64)


def tangent(value: torch.Tensor) -> Any:
    found = fwad.unpack_dual(value).tangent
    return None if found is None else found.tolist()


# Levels.


def test_a_level_gives_its_number_and_ends_with_its_block() -> None:
    with fwad.dual_level() as level:
        assert level == 0 == fwad._current_level
        dual = fwad.make_dual(numbers(1.0), numbers(2.0))
        assert tangent(dual) == [2.0]
    assert fwad._current_level == -1
    assert fwad.unpack_dual(dual) == (dual, None)
    with fwad.dual_level():
        assert tangent(dual) is None


def test_levels_neither_nest_nor_end_out_of_order() -> None:
    with fwad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the mo"):
            fwad.enter_dual_level()
        with pytest.raises(RuntimeError, match="Trying to exit a forward AD level that was not th"):
            fwad.exit_dual_level(level=1)
        with pytest.raises(RuntimeError, match="Exiting a forward AD level that is not the last"):
            torch._C._exit_dual_level(4)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fwad.exit_dual_level()


def test_a_decorated_function_runs_in_a_level_of_its_own() -> None:
    @fwad.dual_level()
    def slope(x: float) -> Any:
        return tangent(fwad.make_dual(numbers(x), numbers(1.0)) ** 3)

    assert slope(2.0) == [12.0]
    assert slope(3.0) == [27.0]


def test_what_cannot_be_a_dual_is_refused() -> None:
    x, t = numbers(1.0, 2.0), numbers(3.0, 4.0)
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwad.make_dual(x, t)
    with fwad.dual_level():
        whole = torch.tensor([1, 2])
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            fwad.make_dual(whole, t)
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            fwad.make_dual(x, whole)
        with pytest.raises(RuntimeError, match="a forward gradient that has a different size than"):
            fwad.make_dual(x, t[:1])
        dual = fwad.make_dual(x, t)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            fwad.make_dual(dual, t)
        with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level"):
            fwad.make_dual(x, dual)
        with pytest.raises(RuntimeError, match="Invalid level given to _make_dual"):
            fwad.make_dual(x, t, level=1)
        with pytest.raises(RuntimeError, match="Invalid level given to _fw_primal"):
            fwad.unpack_dual(x, level=1)
        with pytest.raises(TypeError, match=r"argument 'dual' \(position 1\) must be Tensor, not"):
            fwad.unpack_dual(3)  # type: ignore[arg-type]


# Duals.


def test_a_dual_shares_memory_and_keeps_the_tangent_object() -> None:
    x, t = numbers(1.0, 2.0), numbers(3.0, 4.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        primal, found = fwad.unpack_dual(dual)
        assert found is t
        assert dual.data_ptr() == primal.data_ptr() == x.data_ptr()
        x.add_(1)
        assert x._version == dual._version == primal._version == 1
        assert isinstance(fwad.unpack_dual(dual), fwad.UnpackedDualTensor)
        assert tangent(x) is None


def test_a_tangent_is_told_where_a_tensor_is_printed() -> None:
    with fwad.dual_level():
        dual = fwad.make_dual(torch.tensor([1.0]), torch.tensor([2.0]))
        assert str(dual) == "tensor([1.], tangent=tensor([2.]))"
        assert "tangent" not in str(fwad.unpack_dual(dual).primal)
    assert str(dual) == "tensor([1.])"


def test_duals_of_a_subclass_are_of_the_subclass() -> None:
    class Marked(torch.Tensor):
        pass

    with fwad.dual_level():
        dual = fwad.make_dual(numbers(3.0).as_subclass(Marked), numbers(1.0))
        y = dual * dual
        primal, found = fwad.unpack_dual(y)
        assert isinstance(dual, Marked)
        assert isinstance(primal, Marked)
        assert found is not None
        assert (primal.tolist(), found.tolist()) == ([9.0], [6.0])
        assert tangent(fwad.make_dual(torch.nn.Parameter(numbers(3.0)), numbers(1.0))) == [1.0]


def test_a_long_chain_of_duals_is_freed() -> None:
    x = numbers(1.0).requires_grad_()
    with fwad.dual_level():
        y = fwad.make_dual(x, numbers(1.0))
        for _ in range(50_000):
            y = y * 1.00001
        assert tangent(y) == pytest.approx([1.00001**50_000])
        del y


def test_copies_and_other_objects_take_no_tangent_along() -> None:
    with fwad.dual_level():
        dual = fwad.make_dual(numbers(1.0), numbers(2.0))
        for other in (dual.detach(), dual.data, copy.deepcopy(dual), torch.nn.Parameter(dual)):
            assert tangent(other) is None
        assert tangent(copy.copy(dual)) in ([2.0], None)
        assert dual.numpy().tolist() == [1.0]
        assert dual.item() == 1.0


def test_a_level_does_not_keep_tangents_alive_and_its_end_frees_cycles() -> None:
    gc.collect()
    with fwad.dual_level():
        t = numbers(2.0)
        known = weakref.ref(t)
        dual = fwad.make_dual(numbers(1.0), t)
        del t
        assert known() is not None
        del dual
        assert known() is None
        # The tangent of the result keeps the result, which keeps its tangent.
        t = torch.ones(1, dtype=F64, requires_grad=True)
        known = weakref.ref(t)
        _ = fwad.make_dual(numbers(1.0), t).exp()
        del _, t
    assert known() is None


def test_tangents_are_seen_by_every_thread_but_the_switch_is_each_one_s_own() -> None:
    found: list[Any] = []
    with fwad.dual_level():
        dual = fwad.make_dual(numbers(3.0), numbers(1.0))
        with fwad._set_fwd_grad_enabled(False):
            assert tangent(dual) is None
            assert tangent(dual * dual) is None
            worker = threading.Thread(target=lambda: found.append(tangent(dual * dual)))
            worker.start()
            worker.join()
        assert fwad._is_fwd_grad_enabled()
        assert tangent(dual) == [1.0]
    assert found == [[6.0]]


def test_the_switch_can_decorate() -> None:
    @fwad._set_fwd_grad_enabled(False)
    def enabled() -> bool:
        return fwad._is_fwd_grad_enabled()

    assert fwad._is_fwd_grad_enabled()
    assert enabled() is False


def test_inference_mode_turns_tangents_off_and_no_grad_does_not() -> None:
    x, t = numbers(3.0).requires_grad_(), numbers(1.0).requires_grad_()
    with fwad.dual_level():
        dual = fwad.make_dual(x, t)
        with torch.no_grad():
            value = fwad.unpack_dual(dual * dual)
        assert not value.primal.requires_grad
        assert value.tangent is not None
        assert not value.tangent.requires_grad
        with torch.inference_mode():
            assert not fwad._is_fwd_grad_enabled()
            assert tangent(dual * dual) is None


def test_out_is_refused_and_so_are_new_sizes() -> None:
    x = numbers(1.0, 2.0)
    with fwad.dual_level():
        dual = fwad.make_dual(numbers(1.0, 2.0), numbers(3.0, 4.0))
        for arguments, out in (((dual, x), torch.empty(2)), ((x, x), dual)):
            with pytest.raises(NotImplementedError, match=r"add_out .* because it is an out= fun"):
                torch.add(*arguments, out=out)
        with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
            dual.resize_(5)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with set_"):
            dual.set_(x)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with heaviside"):
            torch.heaviside(dual, x)
        assert torch.eq(dual, x, out=torch.empty(2, dtype=torch.bool)).all()


# With reverse mode.


def test_forward_over_reverse_and_reverse_over_forward_give_second_derivatives() -> None:
    x, v = numbers(1.0, 2.0).requires_grad_(), numbers(1.0, 10.0)
    expected = [6.0, 120.0]  # 6x v
    with fwad.dual_level():
        dual = fwad.make_dual(x, v)
        (found,) = grad((dual**3).sum(), dual)
        assert tangent(found) == expected
        pushed = fwad.unpack_dual((fwad.make_dual(x, v) ** 3).sum()).tangent
        assert pushed is not None
        (found,) = grad(pushed, x)
    assert found.tolist() == expected


def test_gradients_that_backward_accumulates_have_tangents() -> None:
    x = numbers(1.0, 2.0).requires_grad_()
    with fwad.dual_level():
        y = x * fwad.make_dual(numbers(3.0, 4.0), numbers(1.0, 2.0))
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [3.0, 4.0]
        assert tangent(x.grad) == [1.0, 2.0]
        (x * fwad.make_dual(numbers(1.0, 1.0), numbers(1.0, 1.0))).sum().backward()
        assert tangent(x.grad) == [2.0, 3.0]


def test_saved_tensors_that_hooks_packed_come_back_with_their_tangents() -> None:
    x, v = numbers(0.5, 2.0).requires_grad_(), numbers(1.0, 10.0)
    with fwad.dual_level():
        for forward in (torch.sin, torch.exp):
            dual = fwad.make_dual(x, v)
            (plain,) = grad(forward(dual).sum(), dual)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1):
                y = forward(dual).sum()
            (packed,) = grad(y, dual)
            assert tangent(packed) == tangent(plain) != [0.0, 0.0]


def test_a_checkpointed_region_computes_its_tangents_again() -> None:
    x, v = numbers(0.5, 2.0).requires_grad_(), numbers(1.0, 10.0)
    with fwad.dual_level():
        dual = fwad.make_dual(x, v)
        y = checkpoint(lambda x: x.sin().exp(), dual, use_reentrant=False)
        (found,) = grad(y.sum(), dual)
        (plain,) = grad(dual.sin().exp().sum(), dual)
        assert tangent(y) == tangent(dual.sin().exp())
        assert tangent(found) == tangent(plain) != [0.0, 0.0]
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            checkpoint(torch.sin, dual, use_reentrant=True)


def test_tangents_go_through_modules_with_backward_hooks() -> None:
    module = torch.nn.Linear(2, 1, bias=False, dtype=F64)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[2.0, 3.0]]))
    module.register_full_backward_hook(lambda *_: None)
    with fwad.dual_level():
        for x in (numbers(1.0, 1.0), numbers(1.0, 1.0).requires_grad_()):
            assert tangent(module(fwad.make_dual(x, numbers(1.0, 10.0)))) == [32.0]


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_finds_a_wrong_tangent(fast_mode: bool) -> None:
    x = numbers(0.5, 1.5).requires_grad_()
    z = torch.tensor([0.5 + 1j, 2 - 1j], dtype=torch.complex128, requires_grad=True)
    options: dict[str, Any] = {"check_forward_ad": True, "fast_mode": fast_mode}
    assert gradcheck(lambda x, z: (x.sin() * z).exp(), (x, z), **options)
    assert gradgradcheck(lambda x, z: (x.sin() * z).abs(), (x, z), check_fwd_over_rev=True)

    def skewed(x: torch.Tensor) -> torch.Tensor:
        primal, found = fwad.unpack_dual(x * 2)
        return primal if found is None else fwad.make_dual(primal, found * 1.1)

    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for out"):
        gradcheck(skewed, x, **options)


# Custom functions.


def function(forward: Callable[..., Any], jvp: Callable[..., Any]) -> Callable[..., Any]:
    """A function of these two, without backward."""
    body = {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
    made: Any = type("Custom", (Function,), body)
    return made.apply


def test_jvp_gets_a_tangent_for_each_argument() -> None:
    given: list[Any] = []

    def forward(ctx: Any, n: int, x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> Any:
        assert not fwad._is_fwd_grad_enabled()
        ctx.n = n
        ctx.save_for_forward(x, y)
        return n * x * y, i * 1

    def jvp(ctx: Any, n: None, dx: Any, di: Any, dy: Any) -> Any:
        assert not fwad._is_fwd_grad_enabled()
        x, y = ctx.saved_tensors
        given.append((n, dx.tolist(), di, dy.tolist()))
        return ctx.n * (dx * y + x * dy), None

    apply = function(forward, jvp)
    with fwad.dual_level():
        dual = fwad.make_dual(numbers(2.0), numbers(1.0))
        product, _ = apply(3, dual, torch.tensor([1]), numbers(5.0))
        assert tangent(product) == [15.0]
        apply(3, numbers(2.0), torch.tensor([1]), numbers(5.0))
    assert given == [(None, [1.0], None, [0.0])]


def test_missing_tangents_are_none_where_the_function_says_so() -> None:
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x + y

    def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
        assert dy is None
        return dx.clone()

    with fwad.dual_level():
        dual = fwad.make_dual(numbers(2.0), numbers(1.0))
        assert tangent(function(forward, jvp)(dual, numbers(1.0))) == [1.0]


def test_a_saved_result_of_a_function_keeps_its_tangent() -> None:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            result = x.exp()
            ctx.save_for_backward(result)
            ctx.save_for_forward(result)
            return result

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            (result,) = ctx.saved_tensors
            return g * result

        @staticmethod
        def jvp(ctx: Any, t: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            (result,) = ctx.saved_tensors
            return t * result

    x = numbers(0.3, 0.7).requires_grad_()
    assert gradcheck(Exp.apply, x, check_forward_ad=True)
    assert gradgradcheck(Exp.apply, x, check_fwd_over_rev=True)


ONE = (lambda ctx, x: x * 2, lambda ctx, t: t * 2)


@pytest.mark.parametrize(
    ("forward", "jvp", "message"),
    [
        (ONE[0], lambda ctx, t: (t, t), "jvp returned an invalid number of forward gradients"),
        (ONE[0], lambda ctx, t: 3.0, r"expected Variable or None \(got float"),
        (lambda ctx, x: x > 0, ONE[1], "You should return None at that position instead"),
        (lambda ctx, x: x, lambda ctx, t: t * 1, "but the jvp is not returning a view"),
        (lambda ctx, x: x, lambda ctx, t: t.clone()[:], "not returning a view of the given grad"),
        (lambda ctx, x: x[:1], lambda ctx, t: t[:1] * 1, "but the jvp is not returning a view"),
    ],
)
def test_what_jvp_gives_is_checked(forward: Any, jvp: Any, message: str) -> None:
    with fwad.dual_level():
        dual = fwad.make_dual(numbers(2.0, 3.0), numbers(1.0, 1.0))
        with pytest.raises(RuntimeError, match=message):
            function(forward, jvp)(dual)


def test_a_view_of_a_view_has_the_same_view_of_the_tangent_s_base() -> None:
    apply = function(lambda ctx, x: x[1:], lambda ctx, t: t[1:])
    wrong = function(lambda ctx, x: x[1:], lambda ctx, t: t.clone()[1:])
    with fwad.dual_level():
        whole = fwad.make_dual(numbers(1.0, 2.0, 3.0), numbers(4.0, 5.0, 6.0)).clone()
        part = apply(whole[:2])
        assert tangent(part) == [5.0]
        with torch.no_grad():
            part.mul_(2)
        assert tangent(whole) == [4.0, 10.0, 6.0]
        with pytest.raises(RuntimeError, match="view of the same base as the given grad input"):
            wrong(whole[:2])


def test_a_function_that_writes_to_its_input_writes_to_its_tangent() -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    with fwad.dual_level():
        t = numbers(1.0)
        dual = fwad.make_dual(numbers(2.0), t)
        result = function(forward, lambda ctx, t: t.mul_(2))(dual)
        assert result is dual
        assert fwad.unpack_dual(dual).tangent is t
        assert (dual.tolist(), t.tolist()) == ([4.0], [2.0])
        with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
            function(forward, lambda ctx, t: t * 2)(dual)
        with pytest.raises(RuntimeError, match="not returning the forward mode gradients as-is"):
            function(forward, lambda ctx, t: t.mul_(2).clone())(dual)


def test_a_function_without_jvp_says_so() -> None:
    class Plain(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    with fwad.dual_level():
        with pytest.raises(NotImplementedError, match="You must implement the jvp function for cu"):
            Plain.apply(fwad.make_dual(numbers(2.0), numbers(1.0)))
        assert Plain.apply(numbers(2.0)).item() == 4.0


def test_a_tangent_in_the_memory_of_its_primal_is_copied() -> None:
    x = torch.ones(3)
    with fwad.dual_level():
        dual = fwad.make_dual(x, x)
        dual.sin_()
        value, tangent = fwad.unpack_dual(dual)
    assert tangent is not None
    assert value.tolist() == x.tolist() == pytest.approx([math.sin(1.0)] * 3)
    assert tangent.tolist() == pytest.approx([math.cos(1.0)] * 3)
    with fwad.dual_level():
        v = torch.ones(3)
        assert fwad.unpack_dual(fwad.make_dual(x, v)).tangent is v
        both = torch.ones(6)
        first = fwad.make_dual(both[:3], both[3:])
        first.add_(1)
        assert fwad.unpack_dual(first).tangent.tolist() == [1, 1, 1]  # type: ignore[union-attr]


def test_tables_that_are_renormalised_keep_their_tangents() -> None:
    table, tangent = torch.arange(16.0).reshape(4, 4), torch.randn(4, 4)
    index = torch.tensor([[0, 1], [2, 2]])
    with fwad.dual_level():
        dual = fwad.make_dual(table, tangent)
        found = fwad.unpack_dual(torch.nn.functional.embedding(index, dual, max_norm=1.0))
        bags = torch.nn.functional.embedding_bag(index, dual, max_norm=1.0, mode="sum")
        assert torch.equal(fwad.unpack_dual(bags).tangent, tangent[index].sum(1))
    assert torch.equal(found.tangent, tangent[index])
    assert torch.equal(found.primal, table[index])
    assert (table[:3].norm(dim=1) <= 1.0001).all()
