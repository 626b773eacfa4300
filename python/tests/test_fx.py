"""`torch.fx`: programs as graphs, changed and run."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import sys
from typing import Any

import pytest

import pullback as torch
from pullback import fx, nn


def outside(x: Any) -> Any:
    return x + 1


fx.wrap("outside")
fx.wrap("len")


class Small(nn.Module):
    """Layers in a list, a parameter, a buffer, methods, operators, an unpacking."""

    scale: Any

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, x: Any, k: float = 2.0, *, shift: Any = None) -> Any:
        y = self.layers(x) + self.weight * k
        a, b = torch.split(y, [1, 2], dim=-1)
        z = torch.cat([a, b.relu()], dim=-1) * self.scale
        return -z[..., 0] if shift is None else z + shift, {"n": y.shape[0]}


@pytest.fixture
def traced() -> fx.GraphModule:
    torch.manual_seed(0)
    return fx.symbolic_trace(Small(), concrete_args={"shift": None})


def ops(graph: fx.Graph) -> list[str]:
    return [f"{node.op}:{node.name}" for node in graph.nodes]


def test_a_traced_module_computes_what_the_module_does(traced: fx.GraphModule) -> None:
    torch.manual_seed(0)
    model, x = Small(), torch.randn(4, 2)
    expected, found = model(x), traced(x)
    assert torch.equal(found[0], expected[0])
    assert found[1] == {"n": 4}
    assert torch.equal(traced(x, 3.0)[0], model(x, 3.0)[0])
    found[0].sum().backward()
    assert traced.weight.grad is not None
    assert set(traced.state_dict()) == set(model.state_dict())


def test_nodes_are_the_calls_of_the_program(traced: fx.GraphModule) -> None:
    assert ops(traced.graph) == [
        "placeholder:x",
        "placeholder:k",
        "placeholder:shift",
        "call_module:layers_0",
        "call_module:layers_1",
        "get_attr:weight",
        "call_function:mul",
        "call_function:add",
        "call_function:split",
        "call_function:getitem",
        "call_function:getitem_1",
        "call_method:relu",
        "call_function:cat",
        "get_attr:scale",
        "call_function:mul_1",
        "call_function:getitem_2",
        "call_function:neg",
        "call_function:getattr_1",
        "call_function:getitem_3",
        "output:output",
    ]
    traced.graph.lint()
    (relu,) = traced.graph.find_nodes(op="call_method", target="relu")
    assert [used.name for used in relu.all_input_nodes] == ["getitem_1"]
    assert [user.name for user in relu.users] == ["cat"]
    assert "torch.split(add, [1, 2], dim = -1)" in traced.code
    assert 'getattr(self.layers, "0")(x)' in traced.code


@pytest.mark.parametrize(
    "program",
    [
        lambda x: bool(x > 0),
        lambda x: x.item() if x.sum() > 0 else x,
        lambda x: list(x),
        lambda x: [1, 2][x],
        lambda x: 3 in x,
    ],
)
def test_what_depends_on_a_value_is_refused(program: Any) -> None:
    with pytest.raises(fx.proxy.TraceError, match=r"symbolically traced|cannot be iterated"):
        fx.Tracer().trace(program)


def test_operators_are_written_as_operators() -> None:
    def program(x: Any, y: Any) -> Any:
        z = (x + y * 2 - 1) / (3 - x) ** 2 @ y
        return ~(z > 1) & (x != y), 2 // x, -x, x[1:, None], x[..., 0]

    graph = fx.Tracer().trace(program)
    module = fx.GraphModule(nn.Module(), graph)
    for text in ("x + mul", "~gt", "2 // x", "-x", "@ y", "x[(slice(1, None, None), None)]"):
        assert text in module.code
    x, y = torch.rand(2, 2) + 1, torch.rand(2, 2)
    for found, expected in zip(module(x, y), program(x, y), strict=True):
        assert torch.equal(found, expected)


def test_functions_that_are_wrapped_are_nodes() -> None:
    def program(x: Any) -> Any:
        return outside(x) * len(x) + math.floor(x)

    module = fx.symbolic_trace(program)
    targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert targets[:2] == [outside, len]
    assert math.floor in targets
    assert outside(1) == 2
    assert math.floor(1.5) == 1


def test_leaves_may_be_chosen(traced: fx.GraphModule) -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

    graph = Deep().trace(Small(), {"shift": None})
    assert nn.functional.linear in [node.target for node in graph.nodes]
    assert not graph.find_nodes(op="call_module")


def test_a_graph_that_is_changed_changes_the_module(traced: fx.GraphModule) -> None:
    graph = traced.graph
    (relu,) = graph.find_nodes(op="call_method", target="relu")
    with graph.inserting_after(relu):
        new = graph.call_function(torch.mul, (relu, 10.0))
    relu.replace_all_uses_with(new, lambda user: user is not new)
    assert [user.name for user in relu.users] == [new.name]
    graph.lint()
    traced.recompile()
    assert "torch.mul(relu, 10.0)" in traced.code
    with pytest.raises(RuntimeError, match=r"still had 1 users"):
        graph.erase_node(relu)
    (cat,) = graph.find_nodes(op="call_function", target=torch.cat)
    with pytest.raises(TypeError, match="does not support mutation"):
        cat.args[0].append(1)


def test_nodes_that_nobody_uses_are_taken_out_but_for_those_that_change_something() -> None:
    def program(x: Any) -> Any:
        unused = x * 2
        torch.relu(unused)
        x.add_(1)
        return x + 1

    graph = fx.Tracer().trace(program)
    assert graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "add_", "add", "output"]
    assert not graph.eliminate_dead_code()


def test_mistakes_in_a_graph_are_found() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.neg, (x,))
    graph.output(y)
    x.prepend(y)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    y.append(x)
    x.append(y)
    other = fx.Graph()
    with pytest.raises(RuntimeError, match="belongs to another graph"):
        other.call_function(torch.neg, (x,))
    with pytest.raises(ValueError, match="a Callable is expected"):
        graph.create_node("call_function", "neg", (x,))
    lost = fx.Graph(owning_module=nn.Module())
    lost.output(lost.get_attr("absent"))
    with pytest.raises(RuntimeError, match="nonexistent attribute absent"):
        lost.lint()


def test_names_are_given_once_and_are_no_words_of_python() -> None:
    graph = fx.Graph()
    names = [graph.placeholder(name).name for name in ("x", "x", "x_1", "if", "1a", "print")]
    assert names == ["x", "x_1", "x_2", "if_1", "_1a", "print_1"]


def test_modules_are_copied_and_pickled(traced: fx.GraphModule) -> None:
    x = torch.randn(3, 2)
    expected = traced(x)[0]
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        assert torch.equal(other(x)[0], expected)
        assert other.code == traced.code
    deep = copy.deepcopy(traced)
    with torch.no_grad():
        deep.weight.zero_()
    assert torch.equal(traced(x)[0], expected)
    assert type(deep) is not type(traced)


def test_an_interpreter_runs_node_by_node(traced: fx.GraphModule) -> None:
    class Counting(fx.Interpreter):
        seen: list[str]

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            self.seen.append(target.__name__)
            return super().call_function(target, args, kwargs)

    x = torch.randn(3, 2)
    runner = Counting(traced)
    runner.seen = []
    assert torch.equal(runner.run(x)[0], traced(x)[0])
    assert runner.seen.count("getitem") == 4
    with pytest.raises(RuntimeError, match="parameter x, but one was not"):
        fx.Interpreter(traced).run()
    with pytest.raises(RuntimeError) as caught:
        fx.Interpreter(traced).run(torch.randn(3, 5))
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__[-1].startswith("While executing %layers_0")


def test_a_transformer_makes_a_new_graph(traced: fx.GraphModule) -> None:
    class NoNeg(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is operator.neg:
                return args[0]
            return super().call_function(target, args, kwargs)

    x = torch.randn(3, 2)
    assert torch.equal(NoNeg(traced).transform()(x)[0], -traced(x)[0])


def test_places_that_look_like_a_pattern_are_replaced() -> None:
    def program(x: Any, w: Any) -> Any:
        a = torch.cat([x, w]).sum()
        b = torch.cat([w, x]).sum()
        return a + b + torch.cat([x, x]).max()

    module = fx.symbolic_trace(program)
    matches = fx.replace_pattern(
        module,
        lambda u, v: torch.cat([u, v]).sum(),
        lambda u, v: u.sum() + v.sum(),
    )
    assert len(matches) == 2
    x, w = torch.rand(3), torch.rand(3)
    torch.testing.assert_close(module(x, w), program(x, w))
    assert module.code.count("torch.cat") == 1


def test_what_others_use_is_no_place_of_a_pattern() -> None:
    def program(x: Any) -> Any:
        y = torch.relu(x)
        return y.sum() + y

    module = fx.symbolic_trace(program)
    assert fx.replace_pattern(module, lambda x: torch.relu(x).sum(), lambda x: x.sum()) == []


def test_shapes_are_found_by_running(traced: fx.GraphModule) -> None:
    fx.passes.shape_prop.ShapeProp(traced).propagate(torch.zeros(4, 2))
    (cat,) = traced.graph.find_nodes(op="call_function", target=torch.cat)
    assert tuple(cat.meta["tensor_meta"].shape) == (4, 3)


def test_arguments_get_the_names_of_a_signature() -> None:
    found = fx.operator_schemas.normalize_function(
        nn.functional.dropout, (1,), {"training": False}, normalize_to_only_use_kwargs=True
    )
    assert found is not None
    assert found.kwargs == {"input": 1, "p": 0.5, "training": False, "inplace": False}


def test_submodules_come_and_go(traced: fx.GraphModule) -> None:
    assert traced.add_submodule("extra.inside", nn.ReLU())
    assert isinstance(traced.get_submodule("extra.inside"), nn.ReLU)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "extra")
    assert traced.get_submodule("layers.0") is not None
    assert not traced.delete_submodule("absent")


def test_graphs_are_shown(traced: fx.GraphModule, capsys: Any) -> None:
    text = str(traced.graph)
    assert text.startswith("graph(%x, %k, %shift):\n    %layers_0 : [num_users=1] = call_module")
    traced.graph.print_tabular()
    assert "call_function" in capsys.readouterr().out
    assert "class Small" in traced.print_readable(print_output=False)


def test_a_graph_is_made_by_hand() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", default_value=3)
    graph.output(graph.call_method("__add__", (x, 1)))
    assert fx.GraphModule({}, graph)() == 4
    assert fx.GraphModule({}, copy.deepcopy(graph))(5) == 6
