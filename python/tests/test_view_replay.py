"""Views made again of another base, reversed, and histories made of the ops that made the views."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import _force_original_view_tracking as keep_ops
from pullback.autograd import is_view_replay_enabled


@pytest.fixture(autouse=True)
def _off_at_the_end() -> Iterator[None]:
    yield
    assert not is_view_replay_enabled()


def ramp(*shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return torch.arange(float(count)).reshape(*shape).clone()


CHAINS: dict[str, Any] = {
    "one op": lambda x: x.select(1, 2),
    "index": lambda x: x[:, 1:, ::2],
    "chain": lambda x: x.unsqueeze(-1).transpose(-1, -2).squeeze(2),
    "piece": lambda x: x.chunk(2, -1)[1].transpose(0, 1),
    "pieces of a piece": lambda x: x.split_with_sizes([1, 3], -1)[1].unbind(0)[1],
    "complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2))[1],
    "parts": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)).imag[..., 0],
    "expanded": lambda x: x.expand(5, 2, 3, 4).diagonal(0, 1, 2),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_view_is_made_again_of_a_copy_of_its_base(name: str, keeps: bool, mode: Any) -> None:
    base, other = ramp(2, 3, 4), -ramp(2, 3, 4)
    with keep_ops(keeps), mode():
        view = CHAINS[name](base)
    again, expected = view._view_func(other), CHAINS[name](other)
    assert again._base is other
    assert (again.shape, again.stride()) == (expected.shape, expected.stride())
    assert again.storage_offset() == expected.storage_offset()
    assert torch.equal(again, expected)


@pytest.mark.parametrize("name", CHAINS)
def test_a_view_that_keeps_its_ops_is_reversed(name: str) -> None:
    base = ramp(2, 3, 4)
    with keep_ops(True):
        view = CHAINS[name](base)
    alone = view.detach()
    found = view._rev_view_func_unsafe(alone)
    assert found._base is alone
    assert (found.shape, found.stride()) == (base.shape, base.stride())
    assert torch.equal(found, base)


def test_reversed_permutations_need_no_memory_around_them() -> None:
    with keep_ops(True):
        view = ramp(2, 3, 4).permute(2, 0, 1)
        part = ramp(2, 3, 4)[0]
    other = ramp(4, 2, 3)
    found = view._rev_view_func_unsafe(other)
    assert found.data_ptr() == other.data_ptr()
    assert torch.equal(found, other.permute(1, 2, 0))
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        part._rev_view_func_unsafe(ramp(3, 4))
    with keep_ops(True):
        matrix = ramp(6).view(2, 3)
    with pytest.raises(RuntimeError, match="without a copy"):
        matrix._rev_view_func_unsafe(ramp(3, 2).t())


def test_what_lies_in_another_way_is_no_base() -> None:
    base = ramp(4)
    view = base.view(2, 2)
    assert view._view_func(ramp(5)) is None
    assert view._view_func(ramp(5)[1:]) is None
    assert view._view_func(ramp(8)[::2]) is None
    assert torch.zeros(0, 3).view(3, 0)._view_func(ramp(3, 3)[:0]) is None
    assert view._view_func(ramp(4).double()).dtype == torch.float64
    assert view._view_func_unsafe(ramp(5)).tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        view._view_func_unsafe(ramp(3))


@pytest.mark.parametrize(
    "other", [lambda x: x, lambda x: x.detach(), lambda x: x.view(torch.int32)]
)
def test_what_is_no_view_to_autograd_is_not_replayed(other: Any) -> None:
    with keep_ops(True):
        one = other(ramp(4))
    assert one._view_func(ramp(4)) is None
    assert one._view_func_unsafe(ramp(4)) is None
    assert one._rev_view_func_unsafe(ramp(4)) is None


def test_bad_arguments_are_refused() -> None:
    view: Any = ramp(4)[1:]
    with pytest.raises(RuntimeError, match=r"No _rev_view_func\(\) found"):
        view._rev_view_func_unsafe(view)
    with pytest.raises(RuntimeError, match="single argument that is a Tensor"):
        view._rev_view_func_unsafe(1)
    with pytest.raises(TypeError, match=r"argument 'new_base' \(position 1\) must be Tensor"):
        view._view_func(1)
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool"):
        _C._set_view_replay_enabled(1)  # type: ignore[arg-type]
    with keep_ops(True):
        view = ramp(4)[1:]
    with pytest.raises(TypeError):
        view._view_func(ramp(4), symint_visitor_fn=lambda n: "no number")
    with pytest.raises(ZeroDivisionError):
        view._view_func(ramp(4), symint_visitor_fn=lambda n: n / 0)


def test_visitors_change_one_replay() -> None:
    base, other = ramp(3, 4), -ramp(3, 4)
    with keep_ops(True):
        view = base.select(0, 1)
    assert view._view_func(other, symint_visitor_fn=lambda n: n + 1).tolist() == [-8, -9, -10, -11]
    assert view._view_func_unsafe(other, lambda n: n - 1).tolist() == [0, -1, -2, -3]
    assert view._view_func(other).tolist() == [-4, -5, -6, -7]


def test_a_tensor_that_a_view_keeps_can_be_replaced() -> None:
    base = ramp(3, 4)
    part = base[1:2].detach()
    with keep_ops(True):
        whole = torch.slice_inverse(part, base, 0, 1, 2)
    assert torch.equal(whole, base)
    small = whole._view_func(part, tensor_visitor_fn=lambda t: torch.zeros(2, 2))
    assert small.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="must give a Tensor, not str"):
        whole._view_func(part, tensor_visitor_fn=lambda t: "no tensor")
    assert torch.equal(whole._view_func(part), base)


def test_the_gradient_of_what_a_slice_is_part_of_is_the_slice() -> None:
    memory = ramp(3, 4)
    part = (memory[1:3].detach()).requires_grad_()
    whole = torch.slice_inverse(part, memory, 0, 1, 3)
    (grad,) = torch.autograd.grad(whole, part, ramp(3, 4))
    assert grad.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]


VIEWS = [
    (lambda b: b.view(-1), "ViewBackward0"),
    (lambda b: b[1], "SelectBackward0"),
    (lambda b: b[:, 1:], "SliceBackward0"),
    (lambda b: b.t(), "TBackward0"),
    (lambda b: b.permute(1, 0), "PermuteBackward0"),
    (lambda b: b[None], "UnsqueezeBackward0"),
    (lambda b: b.diagonal(), "DiagonalBackward0"),
    (lambda b: b.unfold(0, 2, 2), "UnfoldBackward0"),
]


@pytest.mark.parametrize(("make", "name"), VIEWS)
def test_histories_are_made_again_of_the_ops_that_are_kept(make: Any, name: str) -> None:
    grads = []
    for keeps in (False, True):
        x = ramp(3, 4).requires_grad_()
        base = x * 1
        with keep_ops(keeps):
            view = make(base)
        base.mul_(2)
        assert view.grad_fn.name() == (name if keeps else "AsStridedBackward0")
        assert view.grad_fn.next_functions[0][0] is base.grad_fn
        view.mul_(view.detach().clone())
        assert view.grad_fn.name() == (name if keeps else "AsStridedBackward0")
        grads.append(torch.autograd.grad((base * base).sum(), x)[0])
    assert torch.equal(*grads)


def test_only_what_was_made_within_is_kept() -> None:
    base = ramp(2, 3, 4).requires_grad_() * 1
    with keep_ops(True):
        inner = base[1]
    outer, before = inner[1:], base[1]
    with keep_ops(True):
        last = before.t()
        base.mul_(2)
    edges = lambda view: (view.grad_fn.name(), view.grad_fn.next_functions[0][0].name())  # noqa: E731
    assert edges(outer) == ("AsStridedBackward0", "SelectBackward0")
    assert edges(last) == ("TBackward0", "AsStridedBackward0")
    assert edges(before) == ("AsStridedBackward0", "MulBackward0")


def test_views_of_another_dtype_keep_their_ops_by_themselves() -> None:
    base = ramp(3, 2).requires_grad_() * 1
    view = torch.view_as_complex(base)
    base.mul_(2)
    assert view.grad_fn.name() == "ViewAsComplexBackward0"
    assert view[1:]._rev_view_func_unsafe(view[1:].detach())._is_view()


def test_the_setting_is_made_at_once_and_put_back() -> None:
    with keep_ops(False):
        keep_ops(True)
        assert is_view_replay_enabled()
        with torch.no_grad(), torch.inference_mode():
            assert is_view_replay_enabled()
            keep_ops(False)
        assert not is_view_replay_enabled()
        keep_ops(True)
    assert not is_view_replay_enabled()

    @keep_ops(True)
    def decorated() -> bool:
        return is_view_replay_enabled()

    assert not is_view_replay_enabled()
    assert decorated()
    with keep_ops(True):
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(is_view_replay_enabled()))
        thread.start()
        thread.join()
        assert seen == [False]


def test_wrapped_tensors_are_viewed_again_by_their_own_ops() -> None:
    seen: list[str] = []

    class Wrapped(torch.Tensor):
        inner: Any

        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, strides=inner.stride()
            )
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.name())
            unwrap = lambda t: t.inner if isinstance(t, Wrapped) else t  # noqa: E731
            out = func(*[unwrap(a) for a in args], **(kwargs or {}))
            return args[0] if func.name().endswith("_") else Wrapped(out)

    base, other = Wrapped(ramp(3, 4)), Wrapped(-ramp(3, 4))
    view = base[1]
    seen.clear()
    again: Any = view._view_func(other)
    assert type(again) is Wrapped
    assert again.inner.tolist() == [-4, -5, -6, -7]
    assert seen == ["aten::select.int"]


def test_unsafe_pieces_may_be_written_to() -> None:
    for split in (
        lambda t: t.unsafe_split(1),
        lambda t: torch.unsafe_split_with_sizes(t, (1, 1, 1)),
        lambda t: t.unsafe_chunk(3),
    ):
        x = ramp(3, 2).requires_grad_()
        first, second, _ = split(x * 1)
        assert not first._is_view()
        first.mul_(second)
        assert (first._version, second._version) == (1, 0)
        first.sum().backward()
        assert x.grad.tolist() == [[2, 3], [0, 1], [0, 0]]
    with pytest.raises(RuntimeError, match="chunk expects at least a 1-dimensional tensor"):
        torch.tensor(1.0).unsafe_chunk(2)
    assert [len(p) for p in ramp(0).unsafe_chunk(3)] == [0, 0, 0]
