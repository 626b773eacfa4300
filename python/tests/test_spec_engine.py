"""The engine as programs see it: what runs, in which order, what it says while it runs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import Function, grad
from pullback.autograd.graph import GradientEdge, get_gradient_edge

queue_callback = torch.autograd.Variable._execution_engine.queue_callback


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values or (1, 2)], requires_grad=True)


class Watched(Function):
    """Multiplies by two; ``seen`` gets what the engine says in backward."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        node = _C._current_autograd_node()
        Watched.seen.append((node is ctx, node.name()))
        return grad * 2


def note(seen: list[Any], **tensors: Any) -> None:
    for name, tensor in tensors.items():
        tensor.register_hook(lambda grad, name=name: seen.append(name))


def test_later_nodes_run_first() -> None:
    x, seen = leaf(), []
    a = x * 2
    b = x * 3
    c = a + 1
    d = b + 1
    e = (c * d).sum()
    note(seen, a=a, b=b, c=c, d=d, e=e, x=x)
    e.backward()
    assert seen == ["e", "d", "c", "b", "a", "x"]


def test_several_roots_run_in_the_order_of_their_making() -> None:
    x, seen = leaf(), []
    a, b, c = (x * 2).sum(), (x * 3).sum(), (x * 4).sum()
    note(seen, a=a, b=b, c=c, x=x)
    torch.autograd.backward([b, a, c])
    assert seen == ["c", "b", "a", "x"]


def test_only_what_leads_to_the_inputs_runs() -> None:
    x, y, seen = leaf(), leaf(), []
    a, b = x * 2, y * 3
    c = (a * b).sum()
    note(seen, a=a, b=b, c=c, x=x, y=y)
    a.grad_fn.register_prehook(lambda grads: seen.append("node of a"))
    grad(c, x, retain_graph=True)
    assert seen == ["c", "a", "node of a", "x"]
    seen.clear()
    # The hooks of a captured tensor run, its node does not.
    grad(c, a, retain_graph=True)
    assert seen == ["c", "a"]
    seen.clear()
    # With `backward` the node of an inner input runs.
    c.backward(inputs=[a])
    assert seen == ["c", "a", "node of a"]
    assert x.grad is None


def test_a_gradient_that_is_captured_and_handed_on_is_captured_before_its_hooks() -> None:
    x = leaf()
    a = x * 2
    a.register_hook(lambda grad: grad * 10)
    total = a.sum()
    captured, handed_on = grad(total, [a, x], retain_graph=True)
    assert captured.tolist() == [1, 1]
    assert handed_on.tolist() == [20, 20]
    assert grad(total, a)[0].tolist() == [10, 10]


def test_nodes_with_undefined_gradients_run() -> None:
    x, seen = leaf(), []
    y = x * 2
    y.register_hook(lambda grad: seen.append(grad))
    y.grad_fn.register_prehook(lambda grads: seen.append(grads))
    y.grad_fn.register_hook(lambda given, taken: seen.append((given, taken)))
    _C._functions.UndefinedGrad()(y).sum().backward()  # type: ignore[attr-defined]
    assert seen == [None, (None,), ((None, None), (None,))]
    assert x.grad is None


def test_graphs_without_saved_tensors_can_run_twice() -> None:
    x = leaf()
    for free in ((x + 1).sum(), x.sum()):
        free.backward()
        free.backward()
    for once in ((x * x).sum(), x.exp().sum()):
        once.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            once.backward()


def test_the_first_graph_may_be_freed_while_the_second_is_made() -> None:
    x = leaf()
    y = (x**3).sum()
    (first,) = grad(y, x, create_graph=True, retain_graph=False)
    first.sum().backward()
    assert x.grad.tolist() == [6, 12]
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_the_running_node_is_known_to_all_its_hooks() -> None:
    Watched.seen = seen = []
    x = leaf()
    y = Watched.apply(x)
    z = y * 3

    def says(*_: Any) -> None:
        seen.append(_C._current_autograd_node().name())

    for tensor in (x, y, z):
        tensor.register_hook(says)
    x.register_post_accumulate_grad_hook(says)
    z.grad_fn.register_prehook(says)
    z.grad_fn.register_hook(says)
    z.sum().backward()
    leafs = ["torch::autograd::AccumulateGrad"] * 2
    own = ["WatchedBackward", (True, "WatchedBackward")]
    assert seen == ["MulBackward0"] * 3 + own + leafs
    assert _C._current_autograd_node() is None


def test_the_running_node_is_known_to_hooks_on_saved_tensors() -> None:
    x, seen = leaf(), []

    def unpack(tensor: Any) -> Any:
        seen.append(_C._current_autograd_node().name())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = (x * x).exp()
    y.sum().backward()
    assert seen == ["ExpBackward0", "MulBackward0", "MulBackward0"]


def test_a_backward_inside_of_a_node_gives_it_its_turn_back() -> None:
    class Nests(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with torch.enable_grad():
                inner = leaf() * 2
                total = inner.sum()
            inner.register_hook(lambda g: seen.append(_C._current_autograd_node().name()))
            total.backward()
            seen.append(_C._current_autograd_node() is ctx)
            return grad

    seen: list[Any] = []
    Nests.apply(leaf()).sum().backward()
    assert seen == ["MulBackward0", True]


def test_after_an_error_no_node_is_running() -> None:
    x = leaf()

    def fails(grad: Any) -> None:
        raise KeyError("hook")

    x.register_hook(fails)
    with pytest.raises(KeyError, match="hook"):
        x.sum().backward()
    assert _C._current_autograd_node() is None
    assert _C._current_graph_task_id() == -1


def test_what_will_run_is_known_while_it_does() -> None:
    x, seen = leaf(), []
    y = x * 2
    node, other = y.grad_fn, (x * 3).grad_fn
    accumulates = node.next_functions[0][0]
    total = y.sum()
    y.register_hook(lambda grad: seen.append([runs(n) for n in (node, other)]))
    runs = _C._will_engine_execute_node
    total.backward(retain_graph=True)
    total.backward(inputs=[x], retain_graph=True)
    grad(total, x, retain_graph=True)
    assert seen == [[True, False]] * 3
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        runs(node)
    for what in (1, None, x):
        with pytest.raises(RuntimeError, match="expects an grad_fn"):
            runs(what)
    y.register_hook(lambda grad: runs(accumulates))
    with pytest.raises(RuntimeError, match=r"are currently running autograd\.grad\(\)"):
        grad(total, x)


def test_the_order_is_told_where_multithreading_is_disabled() -> None:
    x, seen = leaf(), []
    a = x * 2
    b = x.exp()
    total = (a * b).sum()

    def names(grad: Any) -> None:
        order = _C._current_graph_task_execution_order()
        seen.append([node.name().split("::")[-1] for node in order])

    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        _C._current_graph_task_execution_order()
    total.register_hook(names)
    with pytest.raises(RuntimeError, match="executed with multithreading disabled"):
        total.backward(retain_graph=True)
    assert x.grad is None
    with torch.autograd.set_multithreading_enabled(False):
        total.backward(retain_graph=True)
        grad(total, a)
    inner = ["SumBackward0", "MulBackward0"]
    assert seen[0] == [*inner, "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert seen[1][:2] == inner


def test_multithreading_is_a_switch_of_this_thread() -> None:
    for value in (1, "yes", None):
        with pytest.raises(TypeError, match="must be bool"):
            torch.autograd.set_multithreading_enabled(value)  # type: ignore[arg-type]
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        with torch.no_grad():
            assert not torch.autograd.is_multithreading_enabled()
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()


def test_callbacks_run_at_the_end_and_may_add_more() -> None:
    x, seen = leaf(), []
    y = x * 2

    def last() -> None:
        seen.append(x.grad.tolist())
        queue_callback(lambda: seen.append("added"))

    y.register_hook(lambda grad: queue_callback(last))
    y.sum().backward()
    assert seen == [[2, 2], "added"]
    with pytest.raises(RuntimeError, match="can only be installed during backward pass"):
        queue_callback(last)


def test_an_error_in_a_callback_is_the_error_of_the_backward() -> None:
    x, seen = leaf(), []
    y = x * 2

    def fails() -> None:
        raise ValueError("in a callback")

    y.register_hook(lambda grad: queue_callback(fails))
    y.register_hook(lambda grad: queue_callback(lambda: seen.append(1)))
    with pytest.raises(ValueError, match="in a callback"):
        y.sum().backward()
    assert seen == []
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    "edge",
    [
        lambda node: GradientEdge(None, 0),
        lambda node: GradientEdge(1, 0),
        lambda node: (None, 0),
        lambda node: GradientEdge(node, 5),
        lambda node: GradientEdge(node, -1),
        lambda node: GradientEdge(node, "0"),
    ],
)
def test_an_edge_that_leads_nowhere_is_refused(edge: Any) -> None:
    x = leaf()
    total = (x * 2).sum()
    with pytest.raises((RuntimeError, TypeError)):
        torch.autograd.backward(edge(total.grad_fn))
    with pytest.raises((RuntimeError, TypeError)):
        grad(total, edge(total.grad_fn))
    assert x.grad is None


def test_the_first_of_an_edge_is_a_node() -> None:
    with pytest.raises(TypeError, match=r"first object must be an autograd\.graph\.Node"):
        torch.autograd.backward(GradientEdge(None, 0))


def test_roots_and_inputs_are_tensors_or_edges() -> None:
    x = leaf()
    total = (x * 2).sum()
    with pytest.raises(RuntimeError, match="neither a Tensor nor a GradientEdge"):
        torch.autograd.backward([1])
    for call in (lambda: total.backward(inputs=[1]), lambda: grad(total, [1])):
        with pytest.raises(RuntimeError, match="have to be Tensors or GradientEdges"):
            call()
    total.backward(inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [2, 2]


def test_gradients_that_are_made_from_nothing_require_grad() -> None:
    x, unused = leaf(), leaf()
    used, made = grad((x * 2).sum(), [x, unused], materialize_grads=True)
    assert not used.requires_grad
    assert made.tolist() == [0, 0]
    assert made.requires_grad


def test_the_gradient_of_a_tensor_is_that_of_its_present_value() -> None:
    x = leaf()
    y = x * 2
    total = y.sum()
    y.mul_(3)
    assert grad(total, y, allow_unused=True, retain_graph=True) == (None,)
    assert grad((y * 5).sum(), y)[0].tolist() == [5, 5]
