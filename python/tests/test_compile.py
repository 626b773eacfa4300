"""`torch.compile` runs programs as they are, and refuses what PyTorch refuses."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback._dynamo.eval_frame import OptimizedModule
from pullback._dynamo.exc import InvalidBackend


def double(x: Any) -> Any:
    """Twice."""
    return x * 2


def test_a_backend_that_is_not_there_is_refused_and_the_others_are_named() -> None:
    with pytest.raises(InvalidBackend, match=r"Invalid backend: 'nonsense'.* eager, .*inductor"):
        torch.compile(double, backend="nonsense")
    with pytest.raises(RuntimeError, match="Invalid backend"):
        torch.compile(backend="nonsense")
    with pytest.raises(TypeError, match="backend must be a string or a callable, but got int"):
        torch.compile(double, backend=3)
    with pytest.raises(NotImplementedError, match="captures no graph"):
        torch.compile(double, backend=lambda graph, inputs: graph)


@pytest.mark.parametrize("backend", torch.compiler.list_backends(None))
def test_the_backends_that_are_listed_are_taken(backend: str) -> None:
    assert torch.compile(double, backend=backend)(torch.ones(2)).tolist() == [2, 2]


def test_backends_are_listed_by_their_tags() -> None:
    assert torch.compiler.list_backends() == ["inductor"]
    assert "eager" in torch.compiler.list_backends(exclude_tags=None)


def test_arguments_are_checked() -> None:
    both = "Either mode or options can be specified, but both can't be specified at the same time."
    with pytest.raises(RuntimeError, match=both):
        torch.compile(double, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode=x, should be one of: default, "):
        torch.compile(double, mode="x")
    assert torch.compile(double, mode="max-autotune")(torch.ones(1)).item() == 2
    # (Modes are those of one backend.)
    assert torch.compile(double, mode="x", backend="eager")(torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match="options must be a dict"):
        torch.compile(double, options=["a"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        torch.compile(double, foo=1)
    with pytest.raises(TypeError, match="fullgraph must be a bool, but got str"):
        torch.compile(double, fullgraph="x")
    with pytest.raises(TypeError, match="dynamic must be a bool, but got str"):
        torch.compile(double, dynamic="x")
    for given in (3, "a"):
        with pytest.raises(AssertionError, match="A callable function is expected, but <class"):
            torch.compile(given)


def test_a_function_stays_what_it_is() -> None:
    compiled = torch.compile(double)
    assert compiled is not double
    assert (compiled.__name__, compiled.__doc__) == ("double", "Twice.")
    assert compiled.__wrapped__ is double
    assert compiled._torchdynamo_orig_callable is double
    assert inspect.signature(compiled) == inspect.signature(double)
    x = torch.ones(2, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert torch.compile(double, disable=True) is double
    assert torch.compile(nn.Linear) is nn.Linear


def test_as_a_decorator() -> None:
    @torch.compile
    def plain(x: Any) -> Any:
        return x + 1

    @torch.compile(fullgraph=True, dynamic=False)
    def with_options(x: Any) -> Any:
        return x + 2

    @torch.compiler.disable
    def never(x: Any) -> Any:
        return x + 3

    @torch.compile(disable=True)
    def disabled(x: Any) -> Any:
        return x + 4

    values = [f(torch.zeros(())).item() for f in (plain, with_options, never, disabled)]
    assert values == [1, 2, 3, 4]


def test_a_module_is_a_part_of_what_stands_for_it() -> None:
    model = nn.Linear(2, 3)
    compiled = torch.compile(model)
    assert type(compiled) is OptimizedModule
    assert isinstance(compiled, nn.Module)
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert [name for name, _ in compiled.named_modules()] == ["", "_orig_mod"]
    assert next(compiled.parameters()) is model.weight
    x = torch.randn(4, 2)
    assert torch.equal(compiled(x), model(x))


def test_its_attributes_are_the_modules() -> None:
    model = nn.Linear(2, 3)
    compiled = torch.compile(model)
    assert compiled.weight is model.weight
    assert compiled.in_features == 2
    compiled.note = "kept"
    assert model.note == "kept"
    compiled.bias = nn.Parameter(torch.zeros(3))
    assert model.bias.tolist() == [0, 0, 0]
    del compiled.note
    assert not hasattr(model, "note")
    with pytest.raises(AttributeError, match="no_such_name"):
        compiled.no_such_name  # noqa: B018 (asking is the point)
    assert "in_features" in dir(compiled)
    assert compiled.eval() is compiled
    assert (model.training, compiled.training) == (False, False)
    model.train()
    assert compiled.training


def test_hooks_are_its_own() -> None:
    model = nn.Linear(2, 3)
    compiled = torch.compile(model)
    seen = []
    compiled.register_forward_hook(lambda module, args, out: seen.append(module))
    model.register_forward_hook(lambda module, args, out: seen.append(module))
    compiled(torch.ones(2))
    assert seen == [model, compiled]


def test_a_module_that_compiles_itself_checks_and_stays() -> None:
    model = nn.Linear(2, 3)
    x = torch.ones(2)
    before = model(x)
    assert model.compile(backend="eager") is None
    assert torch.equal(model(x), before)
    with pytest.raises(InvalidBackend):
        model.compile(backend="nonsense")


def test_containers_have_a_length() -> None:
    assert len(torch.compile(nn.Sequential(nn.ReLU(), nn.ReLU()))) == 2
    with pytest.raises(TypeError, match=r"does not support len\(\)"):
        len(torch.compile(nn.ReLU()))


def test_it_is_copied_and_pickled() -> None:
    compiled = torch.compile(nn.Linear(2, 3))
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is OptimizedModule
        assert torch.equal(other._orig_mod.weight, compiled._orig_mod.weight)
        assert other._orig_mod is not compiled._orig_mod


def test_it_trains() -> None:
    compiled = torch.compile(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    before = compiled.weight.clone()
    compiled(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    assert torch.equal(compiled.weight, before - 0.3)


def test_questions_are_answered() -> None:
    compiler = torch.compiler
    assert not compiler.is_compiling()
    assert not compiler.is_dynamo_compiling()
    assert not compiler.is_exporting()
    assert compiler.get_default_backend() == "inductor"
    with pytest.raises(InvalidBackend):
        compiler.set_default_backend("nonsense")
    compiler.set_default_backend("eager")
    try:
        assert compiler.get_default_backend() == "eager"
        assert torch.compile(double, mode="x")(torch.ones(1)).item() == 2
    finally:
        compiler.set_default_backend(None)
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'x'"):
        compiler.set_stance("x")
    with compiler.set_stance("force_eager"):
        assert compiler.compile(double)(torch.ones(1)).item() == 2
