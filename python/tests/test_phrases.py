"""The phrases of errors that programs match on, each reached as a user would reach it.

One test for each row of the first list of `docs/behaviour.md`, checking class and phrase.
Rows, or halves of them, that are tested elsewhere:

    situation                     test
    root without graph            test_autograd.py::test_without_graph
    root that is no scalar        test_autograd.py::test_gradient_argument
    wrong shape at the root       test_autograd.py::test_gradient_argument
    invalid gradient of a node    test_function.py::test_wrong_results_of_backward
    freed graph                   test_autograd.py::test_freed_graph
    stale saved value             test_autograd.py::test_changed_saved_values_are_found
    several views, written to     test_autograd.py::test_views_that_are_read_only
    view without grad, written to test_autograd.py::test_views_that_are_read_only
    view of a custom function     test_function.py::test_views_from_custom_functions_are_read_only
    detach_ of a view             test_autograd.py::test_views_that_are_read_only
    inference tensors, saved      test_autograd.py::test_inference_mode
    inference tensors, versions   test_autograd.py::test_inference_mode
    unused input                  test_autograd.py::test_unused_inputs
    backward with inputs=[]       test_autograd.py::test_inputs_limit_where_gradients_go
    differentiated twice          test_function.py::test_once_differentiable
    hook without gradient         test_autograd.py::test_wrong_hooks
    hook that changes sizes       test_autograd.py::test_wrong_hooks
    counts of a custom function   test_function.py::test_wrong_results_of_backward
    gradient of what is no tensor test_function.py::test_gradient_for_what_is_no_tensor
    numpy                         test_interop.py::test_numpy_of_recorded_tensors
    deepcopy                      test_interop.py::test_deepcopy
    a missing rule of forward mode test_forward_ad.py::test_out_is_refused_and_so_are_new_sizes
    backward within vmap          test_func_vmap.py::test_backward_is_refused_within_a_transform
    nan in anomaly mode           test_anomaly.py::test_nan_is_an_error_with_its_index

"returned an invalid number of gradients" is of nodes that a program in Rust adds: from Python the
counts of custom functions and of hooks are found first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.autograd import Variable, backward, grad


def leaf(*values: float) -> Any:
    """A leaf that requires grad."""
    return torch.tensor(values, requires_grad=True)


def refuses(phrase: str, error: type[Exception] = RuntimeError) -> Any:
    """What `pytest.raises` gives for exactly this phrase somewhere in the text."""
    return pytest.raises(error, match=re.escape(phrase))


# --- in-place on leaves --------------------------------------------------------------------------

WRITES: dict[str, Callable[[Any], Any]] = {
    "number": lambda x: x.add_(1),
    "operator": lambda x: x.__imul__(2),
    "fill": lambda x: x.zero_(),
    "copy": lambda x: x.copy_(torch.ones(2, 2)),
    "all elements": lambda x: x.__setitem__(..., 1),
    "a row": lambda x: x.__setitem__(0, 1),
    "mask": lambda x: x.masked_fill_(torch.ones(2, 2).bool(), 1),
    "random": lambda x: x.normal_(),
    "clamp": lambda x: x.clamp_(0),
    "geometry": lambda x: x.t_(),
    "dimension": lambda x: x.unsqueeze_(0),
    "initial value": lambda x: x.index_fill_(0, torch.tensor([0]), 1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_leaf_that_requires_grad_is_not_written_to(write: Callable[[Any], Any]) -> None:
    x = torch.full((2, 2), 3.0, requires_grad=True)
    kind = "a view of a leaf" if write is WRITES["a row"] else "a leaf"
    phrase = f"{kind} Variable that requires grad is being used in an in-place operation."
    with refuses(phrase):
        write(x)
    assert x.tolist() == [[3, 3], [3, 3]]
    # Nor is a view of it, however it came to be.
    for view in (x[:], x.view(2, 2), x.t(), x.view(4).view(2, 2)):
        with refuses("a view of a leaf Variable that requires grad is being used in an in-place"):
            write(view)
    assert x.tolist() == [[3, 3], [3, 3]]


def test_a_leaf_that_requires_grad_gets_no_other_memory() -> None:
    x = leaf(1.0, 2.0)
    with refuses("a leaf Variable that requires grad is being used in an in-place operation."):
        x.set_(torch.ones(1))
    with refuses("a view of a leaf Variable that requires grad is being used in an in-place"):
        x[:1].set_(torch.ones(1))


def test_backward_through_other_memory_is_refused() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.set_(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"derivative for (\w+::)?set_ is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize("resize", [lambda x: x.resize_(3), lambda x: x.resize_(2)])
def test_what_requires_grad_is_not_resized(resize: Callable[[Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    for tensor in (x, x * 1, x[:1]):
        shape = tensor.shape
        with refuses("cannot resize variables that require grad"):
            resize(tensor)
        assert tensor.shape == shape
    resize(x.detach())


# --- views of other modes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "name", "block"),
    [
        (torch.no_grad, "no_grad mode", "inside the no_grad block"),
        (torch.inference_mode, "inference mode", "inside the inference_mode block"),
    ],
)
def test_views_of_other_modes_say_in_which_they_were_made(
    mode: Callable[[], Any], name: str, block: str
) -> None:
    base = leaf(1.0, 2.0).clone()
    with mode():
        view = base[:1]
        further = view[:]
    made = f"A view was created in {name} and"
    for written in (view, further):
        with pytest.raises(RuntimeError, match=f"{made} is being modified inplace .* {block}"):
            written.mul_(2)
    assert base.tolist() == [1, 2]
    base.mul_(2)
    other = "its base or another view of its base has been modified inplace"
    with pytest.raises(RuntimeError, match=f"{made} {other} .* {block}"):
        _ = view.grad_fn


# --- inference tensors ---------------------------------------------------------------------------


def inference_tensor() -> Any:
    with torch.inference_mode():
        return torch.ones(2)


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: y[:1].mul_(2),
        lambda y: y.__setitem__(0, 1),
        lambda y: torch.add(torch.ones(2), 1, out=y),
        lambda y: y.copy_(leaf(1.0, 2.0)),
    ],
)
def test_inference_tensors_are_written_to_in_inference_mode_only(
    write: Callable[[Any], Any],
) -> None:
    y = inference_tensor()
    with refuses("Inplace update to inference tensor outside InferenceMode is not allowed."):
        write(y)
    # PyTorch has written by then.
    assert y.tolist() == [1, 1]


def test_inference_tensors_require_grad_in_inference_mode_only() -> None:
    phrase = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
    y = inference_tensor()
    with refuses(phrase):
        y.requires_grad_()
    with refuses(phrase):
        y.requires_grad = True
    assert not y.requires_grad
    with torch.inference_mode():
        assert y.requires_grad_().requires_grad


# --- arguments of backward and grad --------------------------------------------------------------


def test_an_unused_input_says_what_to_do() -> None:
    with refuses("Set allow_unused=True if this is the desired behavior."):
        grad(leaf(1.0) * 2, [leaf(1.0)])


def test_inputs_that_do_not_require_grad() -> None:
    x = leaf(1.0)
    with refuses("One of the differentiated Tensors does not require grad"):
        grad(x * 2, [x, torch.ones(1)])
    phrase = "can't retain_grad on Tensor that has requires_grad=False"
    with refuses(phrase):
        (x * 2).backward(inputs=[torch.ones(1)])
    with refuses(phrase):
        backward(x * 2, inputs=[x, torch.ones(1)])
    assert x.grad is None


def test_grad_without_inputs() -> None:
    # PyTorch 2.15 raises RuntimeError here and says what backward says; the class of 2.6 is kept.
    with refuses("grad requires non-empty inputs.", ValueError):
        grad(leaf(1.0) * 2, [])
    with refuses("`inputs` argument to `backward()` cannot be empty."):
        backward(leaf(1.0) * 2, inputs=[])


# --- derivatives that are not there --------------------------------------------------------------


def test_backward_through_an_op_without_a_rule_names_it() -> None:
    x, values = leaf(-1.0, 0.0), leaf(0.5, 0.5)
    y = torch.heaviside(x, values)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=r"derivative for (\w+::)?heaviside is not implemented"):
        y.sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_backward_through_weights_of_bincount_names_it() -> None:
    y = torch.bincount(torch.tensor([0, 1]), weights=leaf(1.0, 2.0))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=r"derivative for (\w+::)?bincount is not implemented"):
        y.sum().backward()


SCORES, CLASSES = torch.zeros(2, 3), torch.tensor([0, 1])
CONSTANTS: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda w: F.nll_loss(SCORES, CLASSES, weight=w), "nll_loss_forward", "weight"),
    (lambda w: F.cross_entropy(SCORES, CLASSES, weight=w), "nll_loss_forward", "weight"),
    (
        lambda w: F.binary_cross_entropy(SCORES, SCORES, weight=w),
        "binary_cross_entropy",
        "weight",
    ),
    (lambda w: F.multi_margin_loss(SCORES, CLASSES, weight=w), "multi_margin_loss", "weight"),
    (lambda w: F.soft_margin_loss(SCORES, w), "soft_margin_loss", "target"),
    (lambda w: F.batch_norm(SCORES, w, torch.ones(3)), "native_batch_norm", "running_mean"),
    (lambda w: F.batch_norm(SCORES, torch.ones(3), w), "native_batch_norm", "running_var"),
]


@pytest.mark.parametrize(("call", "function", "argument"), CONSTANTS)
def test_an_argument_that_is_a_constant_may_not_require_grad(
    call: Callable[[Any], Any], function: str, argument: str
) -> None:
    w = torch.ones(3, requires_grad=True)
    text = rf"The function '_?{function}' is not differentiable with respect to argument "
    text += rf"'{argument}'. This input cannot have requires_grad True."
    with pytest.raises(RuntimeError, match=text):
        call(w)
    with torch.no_grad():
        call(w)
    call(w.detach())


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.add(x, 1, out=torch.empty(2)),
        lambda x: torch.add(torch.ones(2), 1, out=x),
        lambda x: torch.cat([torch.ones(1), x[:1]], out=torch.empty(2)),
        lambda x: torch.max(x.view(1, 2), 0, out=(torch.empty(2), torch.empty(2).long())),
        lambda x: torch.matmul(torch.ones(2, 2), torch.ones(2), out=x * 1),
    ],
)
def test_outputs_and_gradients_do_not_go_together(call: Callable[[Any], Any]) -> None:
    x = leaf(1.0, 2.0)
    with refuses(
        "(): functions with out=... arguments don't support automatic differentiation, but one of "
        "the arguments requires grad."
    ):
        call(x)
    assert x.tolist() == [1, 2]
    with torch.no_grad():
        call(x)


# --- hooks and callbacks -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3])
def test_hooks_of_nodes_give_as_many_values_as_they_got(count: int) -> None:
    def several(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(values[:1]) * count

    x, w = leaf(1.0), leaf(2.0)
    phrase = "hook 'several' has returned an incorrect number of values"
    if count != 1:
        y = x * w
        y.grad_fn.register_prehook(several)
        with refuses(f"{phrase} (got {count}, but expected 1)"):
            y.backward()

    y = x * w
    y.grad_fn.register_hook(lambda given, got: several(given))
    with pytest.raises(RuntimeError, match="has returned an incorrect number of values"):
        y.backward()
    assert (x.grad, w.grad) == (None, None)


def queue_callback(callback: Callable[[], object]) -> None:
    """Asks for a call at the end of the running backward, as wrappers of modules do."""
    face: Any = Variable
    face._execution_engine.queue_callback(callback)


def test_callbacks_are_installed_during_backward_only() -> None:
    phrase = "Final callbacks can only be installed during backward pass."
    with refuses(phrase):
        queue_callback(lambda: None)


def test_callbacks_run_in_order_when_every_gradient_is_there() -> None:
    order: list[Any] = []
    x = leaf(1.0)

    def more() -> None:
        order.append("first")
        queue_callback(lambda: order.append("third"))

    def hook(g: Any) -> None:
        queue_callback(more)
        queue_callback(lambda: order.append(("second", x.grad.item())))

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert order == ["first", ("second", 2), "third"]


# --- dtypes that cannot require grad -------------------------------------------------------------

FACTORIES: dict[str, Callable[..., Any]] = {
    "zeros": lambda **more: torch.zeros(2, **more),
    "full": lambda **more: torch.full((2,), 3, **more),
    "ones_like": lambda **more: torch.ones_like(torch.ones(2), **more),
    "new_zeros": lambda **more: torch.ones(2).new_zeros(2, **more),
    "arange": lambda **more: torch.arange(3, **more),
    "eye": lambda **more: torch.eye(2, **more),
    "randint": lambda **more: torch.randint(3, (2,), **more),
}
ONLY_FLOATS = "nly Tensors of floating point and complex dtype can require gradients"


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_tensors_of_integers_cannot_be_made_to_require_grad(dtype: torch.dtype) -> None:
    with refuses(ONLY_FLOATS):
        torch.tensor([1], dtype=dtype, requires_grad=True)
    with refuses(ONLY_FLOATS):
        torch.asarray([1], dtype=dtype, requires_grad=True)
    with refuses(ONLY_FLOATS):
        torch.nn.Parameter(torch.ones(2, dtype=dtype))
    x = torch.ones(2, dtype=dtype)
    with refuses(ONLY_FLOATS):
        x.requires_grad = True
    assert not x.requires_grad
    # This way the text is another one.
    with refuses("only Tensors of floating point dtype can require gradients"):
        x.requires_grad_()


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_factories_make_no_integers_that_require_grad(make: Callable[..., Any]) -> None:
    with refuses(ONLY_FLOATS):
        make(dtype=torch.int64, requires_grad=True)


# --- other libraries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "export",
    [lambda x: x.__dlpack__(), torch.from_dlpack, np.from_dlpack],
    ids=["method", "torch", "numpy"],
)
def test_dlpack_exports_nothing_that_requires_grad(export: Callable[[Any], Any]) -> None:
    phrase = "Can't export tensors that require gradient, use tensor.detach()"
    x = leaf(1.0, 2.0)
    for tensor in (x, x * 1):
        with refuses(phrase, BufferError):
            export(tensor)
    export(x.detach())


def test_a_derivative_that_nobody_has_written() -> None:
    order = leaf(1.0, 2.0)
    y = torch.igamma(order, torch.tensor([2.0, 3.0]))
    with refuses("the derivative for 'igamma: input' is not implemented", NotImplementedError):
        y.sum().backward()


# --- what beginners pass by mistake ---------------------------------------------------------------


def test_an_unused_input_is_named_by_its_index() -> None:
    x, unused = leaf(1.0), leaf(2.0)
    with refuses("The differentiated Tensor at index 1 appears to not have been used in the graph"):
        grad(x * 2, [x, unused])


def test_layers_name_the_dtypes_of_input_and_weight_or_bias() -> None:
    doubles = torch.zeros(4, 3, dtype=torch.float64)
    with refuses("mat1 and mat2 must have the same dtype, but got Double and Float"):
        torch.nn.Linear(3, 2)(doubles)
    with refuses("expected m1 and m2 to have the same dtype, but got: double != float"):
        torch.nn.Linear(3, 2, bias=False)(doubles)
    pixels = torch.zeros(1, 3, 8, 8, dtype=torch.int64)
    with refuses("Input type (long int) and bias type (float) should be the same"):
        torch.nn.Conv2d(3, 2, 3)(pixels)
    with refuses("expected scalar type Long but found Float"):
        torch.nn.Conv2d(3, 2, 3, bias=False)(pixels)


def test_a_list_of_texts_is_no_tensor() -> None:
    for data in (["a", "b"], [["a"]]):
        with refuses("too many dimensions 'str'", ValueError):
            torch.tensor(data)
    for data in ("a", [1, "a"], [[1], ["a"]]):
        with refuses("new(): invalid data type 'str'", TypeError):
            torch.tensor(data)


def test_arrays_of_other_types_are_named_as_numpy_names_them() -> None:
    for array, name in [
        (np.array(["a"]), "numpy.str_."),
        (np.array([None]), "numpy.object_."),
        (np.array(["2020"], dtype="datetime64[D]"), "numpy.datetime64."),
    ]:
        with refuses(f"can't convert np.ndarray of type {name}", TypeError):
            torch.from_numpy(array)


def test_shapes_that_have_no_cosine_are_told_by_their_sizes() -> None:
    phrase = "The size of tensor a (3) must match the size of tensor b (4) at non-singleton"
    for second, dim in [((2, 4), 1), ((4,), 1), ((5, 2, 4), 2)]:
        with refuses(f"{phrase} dimension {dim}"):
            F.cosine_similarity(torch.ones(2, 3), torch.ones(second))
