"""What autograd systems most often get wrong: hooks, saved values, accumulation, functions.

One test or more for each row of the second list of `docs/behaviour.md`. Rows about views
(1, 2, 17 and 18) are in `test_pitfalls_view.py`, rows about the engine (14 to 16, 28 and 30) in
`test_pitfalls_engine.py`. A row, or a half of one, that has its test elsewhere is named here:

    row  what                                   test
    3    a gradient is retained before pre-hooks  test_hooks.py::test_order_for_one_node
    4    counters of data and detach            test_autograd.py::test_versions
    5    outputs are saved detached             test_saved_tensors.py::
                                      test_a_saved_output_has_its_history_and_makes_no_cycle
    5    inputs are saved as they are           test_saved_tensors.py::
                                      test_without_hooks_a_saved_input_is_the_tensor_itself
    7    gradients of ops are summed and cast   test_autograd.py::
                                      test_broadcast_and_casts_come_back
    7    a larger gradient is summed            test_function.py::test_larger_gradients_are_summed
    8    grad stays the same object             test_autograd.py::test_accumulates
    11   set_grad_enabled acts at once          test_autograd.py::
                                      test_set_grad_enabled_acts_at_once
    11   set_detect_anomaly acts at once        test_anomaly.py::test_modes_nest_and_come_back
    12   decorated generators                   test_autograd.py::
                                      test_generators_keep_the_mode_to_themselves
    13   pack sees the tensor, once, unrecorded test_saved_tensors.py::
                                      test_pack_is_called_once_and_unpack_whenever_wanted
    13   exceptions pass through                test_saved_tensors.py::
                                      test_errors_of_hooks_come_through
    21   create_graph makes a new grad          test_autograd.py::test_create_graph_in_backward
    22   zeros or None for a function           test_function.py::test_materialized_gradients
    23   a returned input is an alias           test_function.py::test_returned_input_is_an_alias
    23   a dirty input is the same object       test_function.py::test_mark_dirty_keeps_the_object
    24   attributes outlive their wrapper       test_identity.py::
                                      test_attributes_survive_while_the_graph_lives
    25   numpy() without recording              test_interop.py::test_numpy_of_recorded_tensors
    26   texts of wrong arguments, as recorded  test_arguments.py::test_raises_as_recorded
    27   modes that turn forward mode off       test_forward_ad.py::
                    test_inference_mode_turns_tangents_off_and_no_grad_does_not
    28   anomaly mode is one for all threads    test_anomaly.py::
                                      test_the_mode_is_one_for_all_threads
    29   checkpoint, reentrant                  test_checkpoint.py::
                                      test_what_the_reentrant_way_refuses
    29   checkpoint, not reentrant              test_checkpoint.py::
                                      test_without_reentry_everything_of_autograd_works
    30   events that carry the numbers          test_profiler.py::
                                      test_events_of_forward_and_backward

Not yet: row 20, moving a gradient to another device (there is one device).
"""

from __future__ import annotations

import gc
import math
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function, grad
from pullback.autograd.graph import saved_tensors_hooks


def leaf(*values: float) -> Any:
    """A leaf that requires grad."""
    return torch.tensor(values, requires_grad=True)


def names(node: Any) -> list[tuple[str | None, int]]:
    """Where the edges of a node lead: the names of nodes, None for an edge to nowhere."""
    return [(n and n.name().rpartition("::")[2], nr) for n, nr in node.next_functions]


class Answers(Function):
    """The identity, whose backward gives what it is told to give."""

    @staticmethod
    def forward(ctx: Any, x: Any, answer: Callable[[Any], Any]) -> Any:
        ctx.answer = answer
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.answer(grad), None


# --- row 3: hooks of what does not run -----------------------------------------------------------


def test_hooks_of_a_tensor_fire_though_its_node_does_not_run() -> None:
    x = leaf(1.0, 2.0)
    middle = x * 2
    seen: list[Any] = []
    ran: list[Any] = []

    def tenfold(g: Any) -> Any:
        seen.append(g.tolist())
        return g * 10

    middle.register_hook(tenfold)
    middle.grad_fn.register_prehook(ran.append)
    (got,) = grad((middle * middle).sum(), middle)
    assert seen == [[4, 8]]
    assert ran == []
    assert got.tolist() == [40, 80]


def test_what_is_captured_at_a_node_that_runs_is_the_gradient_before_its_hooks() -> None:
    x = leaf(1.0, 2.0)
    middle = x * 2
    middle.register_hook(lambda g: g * 10)
    by_x, by_middle = grad((middle * middle).sum(), [x, middle])
    assert by_middle.tolist() == [4, 8]
    assert by_x.tolist() == [80, 160]


# --- row 4: data and detach ----------------------------------------------------------------------


def test_a_write_through_data_goes_unnoticed_and_one_through_detach_does_not() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = (a * a).sum()
    a.data.zero_()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [0, 0]
    a.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# --- row 5: outputs that are saved ---------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(None), slice(0, 1), slice(1, 2)])
def test_an_output_written_into_a_view_is_saved_without_a_cycle(part: slice) -> None:
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        base = x.clone()
        view = base[part]
        view.exp_()
        (first,) = grad(base.sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x, retain_graph=True)
        wanted, curved = [1.0, 1.0], [0.0, 0.0]
        for at in range(2)[part]:
            wanted[at] = curved[at] = math.exp(at + 1)
        assert first.tolist() == pytest.approx(wanted)
        assert second.tolist() == pytest.approx(curved)
        gone = [weakref.ref(base), weakref.ref(view)]
        del base, view, first, second
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_an_output_that_is_saved_has_the_history_of_its_own_node() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.exp_()
    assert y.grad_fn.name() == "ExpBackward0"
    assert y.grad_fn._saved_result is not y
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.sigmoid_()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert names(y.grad_fn) == [("ExpBackward0", 0)]


# --- row 6: nothing saved, nothing freed ---------------------------------------------------------


def test_a_graph_that_saves_nothing_can_be_walked_twice() -> None:
    x = leaf(1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2, 2]
    # A number that multiplies is saved.
    z = (x * 2).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


# --- row 7: sizes of gradients -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "wrong"),
    [((3,), (1,)), ((3,), ()), ((2, 3), (2, 1)), ((2, 3), (3,)), ((0,), (1,)), ((3,), (4,))],
)
def test_a_gradient_smaller_than_its_input_is_an_error(
    shape: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    x = torch.ones(shape, requires_grad=True)
    y = Answers.apply(x, lambda g: torch.ones(wrong))
    text = f"AnswersBackward returned an invalid gradient at index 0 - got {list(wrong)} but "
    text += f"expected shape compatible with {list(shape)}"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("shape", "given", "value"),
    [((3,), (4, 3), 4), ((2, 1), (5, 2, 3), 15), ((), (2, 3), 6), ((1, 3), (0, 3), 0)],
)
def test_a_gradient_of_a_function_larger_than_its_input_is_summed(
    shape: tuple[int, ...], given: tuple[int, ...], value: float
) -> None:
    x: Any = torch.ones(shape, requires_grad=True)
    Answers.apply(x, lambda g: torch.ones(given)).sum().backward()
    assert x.grad.shape == shape
    assert x.grad.eq(value).all()


# --- row 8: sums of gradients write only to what nobody sees -------------------------------------


def test_grad_is_never_the_tensor_that_the_user_gave() -> None:
    x = leaf(1.0, 2.0)
    given = torch.ones(2)
    x.backward(given)
    x.grad.zero_()
    assert given.tolist() == [1, 1]
    # PyTorch stores the view of `given` that the node gives; here grad shares memory with nothing.
    x.grad = None
    x.view_as(x).backward(given)
    x.grad.zero_()
    assert given.tolist() == [1, 1]


def test_gradients_that_hooks_keep_are_not_added_to() -> None:
    x = leaf(1.0, 2.0)
    middle = x * 1
    kept: list[Any] = []
    parts = [middle.view_as(middle) for _ in range(3)]
    for part in parts:
        part.register_hook(kept.append)
    (parts[0] + parts[1] + parts[2]).sum().backward()
    assert [g.tolist() for g in kept] == [[1, 1]] * 3
    assert x.grad.tolist() == [3, 3]


def test_captured_gradients_are_not_added_to() -> None:
    x = leaf(1.0, 2.0)
    left, right = x.view_as(x), x.view_as(x)
    by_left, by_right, by_x = grad((left + right).sum(), [left, right, x])
    assert by_left.tolist() == by_right.tolist() == [1, 1]
    assert by_x.tolist() == [2, 2]


def test_leaves_do_not_share_their_gradients() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(torch.ones(2))
    x.grad.zero_()
    assert y.grad.tolist() == [1, 1]


# --- row 9: a leaf that stopped ------------------------------------------------------------------


def test_a_leaf_that_stopped_requiring_grad_gets_none() -> None:
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == [2]


# --- row 10: which inputs want gradients ---------------------------------------------------------


class Product(Function):
    """The product of two tensors and a number, which notes what its contexts say."""

    seen: list[tuple[bool, ...]]

    @staticmethod
    def forward(ctx: Any, a: Any, n: float, b: Any, c: Any) -> Any:
        ctx.save_for_backward(a, b)
        ctx.n = n
        Product.seen.append(ctx.needs_input_grad)
        return a * n * b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        Product.seen.append(ctx.needs_input_grad)
        return grad * b * ctx.n, None, grad * a * ctx.n, None


def test_a_context_says_what_the_forward_pass_needed_whatever_the_task_wants() -> None:
    Product.seen = []
    a, b = leaf(2.0), leaf(5.0)
    y = Product.apply(a, 3.0, b, torch.ones(1))
    fired: list[Any] = []
    b.register_hook(fired.append)
    assert grad(y, a)[0].tolist() == [15]
    assert Product.seen == [(True, False, True, False)] * 2
    assert fired == []
    # One edge for each tensor, needed or not.
    assert names(y.grad_fn) == [("AccumulateGrad", 0), ("AccumulateGrad", 0), (None, 0)]


def test_edges_of_inputs_without_gradients_keep_their_places() -> None:
    x = leaf(1.0)
    one = torch.ones(1)
    assert names((x * one).grad_fn) == [("AccumulateGrad", 0), (None, 0)]
    assert names((one * x).grad_fn) == [(None, 0), ("AccumulateGrad", 0)]
    joined = torch.cat([one, x, one])
    assert names(joined.grad_fn) == [(None, 0), ("AccumulateGrad", 0), (None, 0)]


# --- row 13: what hooks on saved tensors see -----------------------------------------------------


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x * 3.0,
        lambda x: 2.0 / x,
        lambda x: x / 2.0,
        lambda x: x**3,
        lambda x: 2.0**x,
    ],
)
def test_hooks_on_saved_tensors_see_no_python_numbers(compute: Callable[[Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    seen: list[tuple[int, ...]] = []

    def pack(tensor: Any) -> Any:
        seen.append(tuple(tensor.shape))
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        y = compute(x)
    assert () not in seen
    y.sum().backward()


def test_hooks_on_saved_tensors_see_tensors_without_dimensions() -> None:
    x = leaf(1.0, 2.0)
    seen: list[Any] = []

    def pack(tensor: Any) -> Any:
        seen.append(tensor)
        return tensor

    number = torch.tensor(3.0)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x * number
    assert len(seen) == 1
    assert seen[0] is number
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_hooks_on_one_saved_tensor_see_a_detached_alias_at_once() -> None:
    x = leaf(1.0, 2.0)
    middle = x * 1
    y = middle.pow(2)
    seen: list[Any] = []

    def pack(tensor: Any) -> Any:
        seen.append((tensor, torch.is_grad_enabled()))
        return tensor

    y.grad_fn._raw_saved_self.register_hooks(pack, lambda tensor: tensor)
    ((alias, recording),) = seen
    assert alias is not middle
    assert alias.data_ptr() == middle.data_ptr()
    assert (alias.requires_grad, alias.grad_fn, recording) == (False, None, False)
    assert y.grad_fn._saved_self is not middle
    assert y.grad_fn._saved_self.grad_fn is middle.grad_fn


# --- row 19: hooks and writes --------------------------------------------------------------------


def test_hooks_stay_with_the_value_that_they_were_registered_for() -> None:
    x = leaf(1.0)
    y = x * 2
    early: list[Any] = []
    late: list[Any] = []
    y.register_hook(early.append)
    y.mul_(5)
    y.register_hook(late.append)
    y.backward()
    assert [g.item() for g in early] == [5]
    assert [g.item() for g in late] == [1]


# --- row 20: dtypes of gradients -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "dtype"),
    [
        (torch.float32, torch.float64),
        (torch.float32, torch.float16),
        (torch.float32, torch.int64),
        (torch.float64, torch.bool),
        (torch.float16, torch.float64),
        (torch.complex64, torch.float64),
        (torch.complex64, torch.complex128),
    ],
)
def test_a_gradient_is_cast_to_the_dtype_of_its_input(
    wanted: torch.dtype, dtype: torch.dtype
) -> None:
    x: Any = torch.ones(2, dtype=wanted, requires_grad=True)
    y = Answers.apply(x, lambda g: torch.tensor([1, 0], dtype=dtype))
    y.backward(torch.ones(2, dtype=wanted))
    assert x.grad.dtype == wanted
    assert x.grad.tolist() == [1, 0]


# --- row 21: grad with a history -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Using backward")
def test_with_create_graph_grad_has_a_history_and_sums_are_new_tensors() -> None:
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    (x**2).backward(create_graph=True)
    assert x.grad is not first
    assert (first.item(), x.grad.item()) == (12, 16)
    (second,) = grad(x.grad, x)
    # The derivative of 3 x^2 + 2 x.
    assert second.item() == 14
    x.grad = None


# --- row 22: undefined, None and zeros -----------------------------------------------------------


class Several(Function):
    """Gives its input beside things that are no tensors; notes the gradients that it gets."""

    seen: list[tuple[Any, ...]]

    @staticmethod
    def forward(ctx: Any, x: Any, materialize: bool) -> Any:
        ctx.set_materialize_grads(materialize)
        return x.clone(), 7, None, "text"

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        Several.seen.append(grads)
        return grads[0], None


@pytest.mark.parametrize("materialize", [True, False])
def test_a_missing_gradient_is_undefined_none_or_zero(materialize: bool) -> None:
    Several.seen = []
    hooks: list[Any] = []
    x = leaf(1.0)
    y, number, nothing, text = Several.apply(x, materialize)
    assert (number, nothing, text) == (7, None, "text")
    y.register_hook(hooks.append)
    z = y * 2
    z.grad_fn.register_prehook(hooks.append)
    Answers.apply(z, lambda g: None).backward()
    # The engine runs what gets nothing; hooks in Python see None.
    assert hooks == [(None,), None]
    ((first, *rest),) = Several.seen
    assert rest == [None, None, None]
    if materialize:
        assert first.tolist() == [0]
        assert x.grad.tolist() == [0]
    else:
        assert first is None
        assert x.grad is None


# --- the table above -----------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["test_pitfalls.py", "test_pitfalls_engine.py", "test_phrases.py"])
def test_the_tables_of_these_files_name_tests_that_there_are(file: str) -> None:
    folder = Path(__file__).parent
    table = (folder / file).read_text().split('"""')[1]
    named = re.findall(r"(test_\w+\.py)::\s*(test_\w+)", table)
    assert len(named) == table.count("::")
    for other, name in named:
        assert f"def {name}(" in (folder / other).read_text(), f"{other}::{name}"
