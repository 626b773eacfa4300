"""Saved tensors, paragraph by paragraph (what `test_saved_tensors.py` has not)."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def same(value: Any) -> Any:
    return value


def test_an_undefined_value_leaves_an_empty_slot_that_takes_no_hooks() -> None:
    node: Any = torch.nn.functional.layer_norm(leaf(), (2,)).grad_fn
    assert node._saved_weight is None
    with pytest.raises(RuntimeError, match="saved tensor with value None is forbidden"):
        node._raw_saved_weight.register_hooks(same, same)


@pytest.mark.parametrize("hooked", [False, True])
def test_inference_tensors_are_not_saved(hooked: bool) -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    context: Any = saved_tensors_hooks(same, same) if hooked else contextlib.nullcontext()
    with (
        context,
        pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"),
    ):
        leaf() * made


def test_hooks_are_not_given_numbers_of_python() -> None:
    seen: list[Any] = []
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], same):
        leaf() * 3.0
        leaf() ** 2.0
        leaf() * torch.tensor(2.0)
    assert [t.shape for t in seen] == [(2,), ()]


@pytest.mark.parametrize(
    ("write", "use"),
    [
        ("input", lambda a: a.sigmoid()),
        ("input", lambda a: a + a),
        ("input", lambda a: a * torch.ones(2)),
        ("nothing", lambda a: a.exp_()),
    ],
)
def test_what_is_not_saved_may_be_written_to(write: str, use: Any) -> None:
    x = leaf()
    a = x * 1
    y = use(a)
    if write == "input":
        a.add_(1)
    y.sum().backward()
    assert x.grad is not None


def test_a_saved_input_that_was_detached_in_place_is_an_error() -> None:
    x = leaf()
    a = x * 1
    y = a * a
    a.detach_()
    with pytest.raises(RuntimeError, match=r"detached in-place, i.e. with .detach_\(\)"):
        y.sum().backward()
    assert x.grad is None


def test_the_version_error_names_type_producer_and_versions() -> None:
    x = leaf().double().detach().requires_grad_()
    a = x.view(1, 2) * 1
    y: Any = a.pow(2)
    a.mul_(2).mul_(2)
    phrase = (
        r"modified by an inplace operation: \[torch.DoubleTensor \[1, 2\]\], which is output 0 of "
        r"MulBackward0, is at version 2; expected version 0 instead"
    )
    for read in (lambda: y.sum().backward(), lambda: y.grad_fn._saved_self):
        with pytest.raises(RuntimeError, match=phrase):
            read()


def test_freed_values_are_an_error_wherever_they_are_read() -> None:
    x = leaf()
    y: Any = x[torch.tensor([0])]
    y.sum().backward()
    for read in (lambda: y.sum().backward(), lambda: y.grad_fn._saved_indices):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            read()


def test_hooks_that_fail_or_give_no_tensor_leave_the_next_try_alone() -> None:
    class Mine(Exception):
        pass

    works = False

    def unpack(tensor: Any) -> Any:
        if not works:
            raise Mine
        return tensor

    x = leaf()
    with saved_tensors_hooks(same, unpack):
        y = x * x
    with pytest.raises(Mine):
        y.sum().backward()
    works = True
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_what_unpack_gives_takes_the_history_of_the_slot_and_its_own_version() -> None:
    x = leaf()
    a = (x * 1).add_(1)
    other = torch.ones(2).add_(1).add_(1).add_(1)
    with saved_tensors_hooks(same, lambda _: other):
        y: Any = a * a
    saved = y.grad_fn._saved_self
    assert saved is not other
    assert saved.grad_fn is a.grad_fn
    assert (saved._version, a._version) == (3, 1)
    other.add_(1)
    assert saved._version == 4


def test_leaving_a_context_takes_the_top_away_whichever_it_was() -> None:
    seen: list[str] = []
    first = saved_tensors_hooks(lambda t: (seen.append("first"), t)[1], same)
    second = saved_tensors_hooks(lambda t: (seen.append("second"), t)[1], same)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    leaf().exp()
    second.__exit__(None, None, None)
    leaf().exp()
    assert seen == ["first"]


def test_a_message_for_disabled_hooks_nests_and_ends_with_an_error() -> None:
    def message() -> str:
        with pytest.raises(RuntimeError) as caught, saved_tensors_hooks(same, same):
            pass
        return str(caught.value)

    with disable_saved_tensors_hooks("outer"):
        with disable_saved_tensors_hooks("inner"):
            assert message() == "inner"
        assert message() == "outer"
    with pytest.raises(ValueError, match="mine"), disable_saved_tensors_hooks("short"):
        raise ValueError("mine")
    decorated = disable_saved_tensors_hooks("decorated")(message)
    assert decorated() == "decorated"
    with saved_tensors_hooks(same, same):
        with pytest.raises(RuntimeError, match="late"), disable_saved_tensors_hooks("late"):
            pass
        leaf().exp()


def test_handles_take_two_functions_once() -> None:
    y: Any = leaf() * leaf()
    handle = y.grad_fn._raw_saved_self
    for wrong in ((), (same,), (1, 2), (same, 3), (same, same, same)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            handle.register_hooks(*wrong)
    handle.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="saved tensor whose hooks have already been set"):
        handle.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="create a SavedTensor object from Python is forbidden"):
        type(handle)()


def test_registered_hooks_see_an_alias_and_drop_what_was_kept() -> None:
    other = torch.ones(2)
    gone = weakref.ref(other)
    seen: list[Any] = []

    def pack(tensor: Any) -> float:
        seen.append((tensor.requires_grad, torch.is_grad_enabled(), tensor is gone()))
        return float(tensor.sum())

    x = leaf()
    y: Any = x * other
    y.grad_fn._raw_saved_other.register_hooks(pack, lambda total: torch.full((2,), total))
    del other
    assert gone() is None
    assert seen == [(False, False, False)]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
