"""Custom functions by the paragraph (see also `test_function.py`): outputs, marks, saving."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.function import once_differentiable

Tensor = torch.Tensor


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def function(forward: Callable[..., Any], backward: Callable[..., Any] = lambda ctx, g: g) -> Any:
    """A function class made of two plain functions."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), methods)


# --- what becomes of an output ------------------------------------------------------------------


def test_an_input_given_back_without_gradient_is_a_view_of_it() -> None:
    x = torch.ones(2)
    y = function(lambda ctx, x: x).apply(x)
    assert y is not x
    assert y._base is x
    assert not y.requires_grad
    assert y.grad_fn is None


def test_an_input_written_to_without_gradient_is_given_back_itself() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    x = torch.ones(2)
    y = function(forward).apply(x)
    assert y is x
    assert x._version == 2  # The write, and the mark.


def test_an_input_marked_as_without_gradient_is_detached_and_keeps_its_own_flag() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x)
        return x

    x = leaf()
    y = function(forward).apply(x)
    assert (y.requires_grad, x.requires_grad) == (False, True)
    assert y.data_ptr() == x.data_ptr()
    with torch.no_grad():
        z = function(lambda ctx, x: x).apply(x)
    assert (z.requires_grad, x.requires_grad, z._is_view()) == (False, True, False)


def test_a_fresh_output_without_gradient_loses_the_history_it_got_in_forward() -> None:
    kept = []

    def forward(ctx: Any, x: Any) -> Any:
        with torch.enable_grad():
            kept.append(x * 2)
        ctx.mark_non_differentiable(kept[0])
        return kept[0]

    y = function(forward).apply(leaf())
    assert y is kept[0]
    assert not y.requires_grad


def test_a_view_of_an_input_without_gradient_is_left_as_it_is() -> None:
    with torch.no_grad():
        y = function(lambda ctx, x: x[:1]).apply(leaf())
    assert y._is_view()
    assert y.requires_grad  # As every view of it that is made without recording.
    assert y.grad_fn is None


def test_a_view_of_a_leaf_cannot_be_an_input_that_is_written_to() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    phrase = "a view of a leaf Variable that requires grad is being used in an in-place operation"
    with pytest.raises(RuntimeError, match=phrase):
        function(forward).apply(leaf(1.0, 2.0, 3.0)[:2])


def test_the_same_input_or_fresh_tensor_may_be_given_back_twice() -> None:
    x = leaf()
    y, z = function(lambda ctx, x: (x, x), lambda ctx, g, h: g + 10 * h).apply(x)
    assert (y.output_nr, z.output_nr) == (0, 1)
    (g,) = torch.autograd.grad((y + 2 * z).sum(), x)
    assert g.tolist() == [21, 21]


def test_views_given_back_beside_other_results_say_that_they_are_several() -> None:
    def split(ctx: Any, x: Any) -> Any:
        return x[:1], x[1:]

    def join(ctx: Any, g: Any, h: Any) -> Any:
        return torch.cat([g, h])

    y, _ = function(split, join).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        y.add_(1)
    one, _ = function(
        lambda ctx, x: (x[:1], torch.zeros(1, dtype=torch.int64)),
        lambda ctx, g, h: torch.cat([g, g]),
    ).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        one.add_(1)


def test_what_is_no_tensor_comes_back_untouched_and_a_list_is_one_result() -> None:
    class Thing:
        pass

    thing = Thing()
    y, text, nothing, back = function(
        lambda ctx, x: (x * 2, "text", None, thing), lambda ctx, *grads: grads[0]
    ).apply(leaf())
    assert (text, nothing, back) == ("text", None, thing)
    assert y.requires_grad
    assert type(function(lambda ctx, x: [x * 2]).apply(leaf())) is list
    assert type(function(lambda ctx, x: (x * 2,)).apply(leaf())) is tuple


def test_backward_gets_none_for_what_is_no_tensor_and_zeros_for_the_rest() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        count = torch.ones(3, dtype=torch.int32)
        ctx.mark_non_differentiable(count)
        return x * 2, "text", torch.ones(1), count

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.extend(None if g is None else (g.tolist(), g.dtype) for g in grads[1:])
        return grads[0]

    function(forward, backward).apply(leaf())[0].sum().backward()
    assert seen == [None, ([0.0], torch.float32), ([0, 0, 0], torch.int32)]


# --- marks and saved tensors --------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["mark_dirty", "mark_non_differentiable"])
@pytest.mark.parametrize("given", [3, "text", [1]])
def test_marking_what_is_no_tensor_is_a_runtime_error(mark: str, given: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        getattr(ctx, mark)(given)
        return x * 2

    with pytest.raises(RuntimeError, match=rf"{mark}.* variable.* {type(given).__name__}"):
        function(forward).apply(leaf())


def test_only_tensors_are_saved_and_the_last_call_counts() -> None:
    def twice(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, None)
        return x * 2

    assert len(function(twice).apply(leaf()).grad_fn.saved_tensors) == 2

    def wrong(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, 3)
        return x * 2

    phrase = "save_for_backward can only save variables, but argument 1 is of type int"
    with pytest.raises(TypeError, match=phrase):
        function(wrong).apply(leaf())
    assert function(wrong).apply(torch.ones(2)).tolist() == [2, 2]  # Nothing is saved there.


def test_clearing_saved_tensors_waits_for_a_run_that_frees_its_graph() -> None:
    states = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        try:
            states.append(len(ctx.saved_tensors))
        except RuntimeError as error:
            states.append("a second time" in str(error))
        return g * x

    x = leaf()
    y = function(forward, backward).apply(x)
    y.grad_fn.maybe_clear_saved_tensors()
    assert y.grad_fn.saved_tensors[0] is x
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert states == [1, True]


def test_tensors_in_containers_are_not_seen() -> None:
    w = leaf()
    seen = []

    def forward(ctx: Any, parts: Any, x: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return parts[0] * x

    function(forward, lambda ctx, g: (None, g)).apply([w], leaf()).sum().backward()
    assert seen == [(False, True)]
    assert w.grad is None


def test_needs_input_grad_is_about_the_arguments_and_not_about_the_mode() -> None:
    seen = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return args[0] * args[1]

    made = function(forward, lambda ctx, g: (None,) * 4)
    made.apply(leaf(), torch.ones(2), 3, None)
    with torch.no_grad():
        made.apply(leaf(), torch.ones(2), 3, None)
    assert seen == [(True, False, False, False)] * 2


# --- once_differentiable ------------------------------------------------------------------------


def test_once_differentiable_makes_a_node_that_is_an_error_and_keeps_places() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, number: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            assert not torch.is_grad_enabled()
            a, b = ctx.saved_tensors
            return g * b, None, g * a

    a, b = leaf(), leaf()
    start = torch.ones(2, requires_grad=True)
    ga, gb = torch.autograd.grad(Two.apply(a, 3, b), [a, b], start, create_graph=True)
    assert (ga.tolist(), gb.tolist()) == ([1, 2], [1, 2])
    assert ga.grad_fn.name() == "torch::autograd::Error"
    assert [node is None for node, _ in ga.grad_fn.next_functions] == [False, True, False]
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with"):
        ga.sum().backward()
    plain = torch.autograd.grad(Two.apply(a, 3, b).sum(), a, create_graph=True)[0]
    assert not plain.requires_grad  # The incoming gradient did not ask for more.


def test_a_tensor_marked_as_written_to_that_is_no_input_is_warned_of() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = function(forward).apply(leaf())
    assert [
        "Only input Tensors should be given to ctx.mark_dirty()" in str(w.message) for w in seen
    ] == [True]
    assert y._version == 1
