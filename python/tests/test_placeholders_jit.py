"""TorchScript's names run Python, `torch.futures`, and what else stands for compiled programs."""

from __future__ import annotations

import copy
import threading
import typing
from typing import Any

import pytest

import pullback as torch
from pullback import jit, nn
from pullback.futures import Future, collect_all, wait_all


def double(x: Any) -> Any:
    """Twice."""
    return x * 2


def test_a_scripted_function_calls_the_function() -> None:
    scripted = jit.script(double)
    assert isinstance(scripted, jit.ScriptFunction)
    assert isinstance(scripted, torch.ScriptFunction)
    assert (scripted.name, scripted.__doc__) == ("double", "Twice.")
    assert scripted(3) == 6
    assert jit.script(scripted) is scripted
    for use in (
        lambda: scripted.save("x"),
        lambda: scripted.save_to_buffer(),
        lambda: scripted.graph,
        lambda: scripted.code,
    ):
        with pytest.raises(NotImplementedError, match="there is no TorchScript"):
            use()


def test_a_scripted_module_shares_what_the_module_has() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    scripted = jit.script(model)
    assert isinstance(scripted, jit.ScriptModule)
    assert scripted.original_name == "Sequential"
    assert list(scripted.state_dict()) == list(model.state_dict())
    assert scripted[0].weight is model[0].weight
    x = torch.ones(1, 2)
    assert torch.equal(scripted(x), model(x))
    scripted.eval()
    assert not model[0].training
    assert torch.equal(copy.deepcopy(scripted)(x), model(x))
    assert "original_name=Sequential" in repr(scripted)
    with pytest.raises(NotImplementedError, match=r"ScriptModule\.save is not available"):
        scripted.save("x")


def test_what_cannot_be_scripted_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"since it inherits from nn\.Module"):
        jit.script(nn.Linear)
    with pytest.raises(TypeError, match="is a built-in class"):
        jit.script(3)
    assert jit.script(dict) is dict
    for name in ("save", "load", "export_opnames"):
        with pytest.raises(NotImplementedError, match=rf"torch\.jit\.{name} is not available"):
            getattr(jit, name)("x")


def test_a_trace_runs_the_example_and_keeps_pythons_control_flow() -> None:
    calls = []

    def function(x: Any) -> Any:
        calls.append(x)
        return x + 1 if x.sum() > 0 else x - 1

    traced = jit.trace(function, torch.ones(1))
    assert len(calls) == 1
    assert traced(-torch.ones(1)).item() == -2
    module = jit.trace(nn.Linear(1, 1), (torch.ones(1, 1),))
    assert isinstance(module, jit.TopLevelTracedModule)
    assert jit.trace(function, example_kwarg_inputs={"x": torch.ones(1)})(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="example_inputs"):
        jit.trace(function)
    with pytest.raises(ZeroDivisionError):
        jit.trace(lambda x: 1 / 0, torch.ones(1))


def test_methods_are_traced_by_name() -> None:
    linear = nn.Linear(1, 1)
    assert isinstance(jit.trace_module(linear, {"forward": torch.ones(1, 1)}), jit.ScriptModule)
    with pytest.raises(AttributeError, match=r"expected torch\.nn\.Module"):
        jit.trace_module(double, {})
    with pytest.raises(AttributeError, match="expected a dictionary"):
        jit.trace_module(linear, [])


def test_decorators_give_the_function_itself() -> None:
    for decorator in (jit.ignore, jit.unused, jit.export, jit.script_method, jit.script_if_tracing):
        assert decorator(double) is double
    assert jit.ignore(drop=True)(double) is double
    with pytest.raises(RuntimeError, match="must be a bool or a function but got 3"):
        jit.ignore(3)
    assert jit.annotate(int, 3) == 3
    assert jit.Attribute(1, int) == (1, int)
    assert jit.Final is typing.Final
    assert jit.interface(nn.Linear) is nn.Linear
    with pytest.raises(RuntimeError, match="interface must be applied to a class"):
        jit.interface(double)


def test_questions_and_contexts() -> None:
    assert not jit.is_scripting()
    assert not jit.is_tracing()
    assert not jit.onednn_fusion_enabled()
    with jit.optimized_execution(True), jit.strict_fusion():
        pass
    before = jit.set_fusion_strategy([("STATIC", 1)])
    assert jit.set_fusion_strategy(before) == [("STATIC", 1)]
    jit.TracerWarning.ignore_lib_warnings()


def test_freezing_wants_a_script_in_evaluation() -> None:
    scripted = jit.script(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule as input"):
        jit.freeze(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(scripted)
    assert jit.freeze(scripted.eval()) is scripted
    assert jit.optimize_for_inference(scripted) is scripted


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1], list[int], True),
        ([1, "a"], list[int], False),
        ([], list[int], True),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2, 3), tuple[int, str], False),
        ((1, 2, 3), tuple[int, ...], True),
        ([1], typing.Optional[typing.List[int]], True),  # noqa: UP006, UP045 (older words)
        (None, list[int] | None, True),
        (3, (str, int), True),
        ([[1], [2]], list[list[int]], True),
    ],
)
def test_containers_are_looked_into(value: Any, kind: Any, expected: bool) -> None:
    assert jit.isinstance(value, kind) is expected


def test_a_container_must_say_what_it_contains() -> None:
    with pytest.raises(RuntimeError, match="Attempted to use list without a contained type"):
        jit.isinstance([1], list)


def test_forked_calls_are_futures() -> None:
    assert jit.wait(jit.fork(double, 3)) == 6
    assert torch.wait(torch.fork(double, 3)) == 6


def test_a_future_has_one_value() -> None:
    future: Future[int] = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    future.set_result(3)
    assert (future.done(), future.value(), future.wait()) == (True, 3, 3)
    with pytest.raises(RuntimeError, match="mark a completed Future as complete again"):
        future.set_result(4)
    with pytest.raises(RuntimeError, match="mark a completed Future as complete again"):
        future.set_exception(ValueError("x"))


def test_a_future_has_an_error_in_place_of_a_value() -> None:
    future: Future[int] = Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        future.set_exception(3)  # type: ignore[arg-type]
    future.set_exception(ValueError("boo"))
    for ask in (future.wait, future.value):
        with pytest.raises(ValueError, match="boo"):
            ask()


def test_callbacks_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    future: Future[int] = Future()
    chain = future.then(lambda f: f.wait() + 1).then(lambda f: f.wait() * 10)
    broken = future.then(lambda f: 1 // 0)
    seen: list[int] = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.add_done_callback(lambda f: 1 // 0)  # type: ignore[arg-type, return-value]
    assert not chain.done()
    future.set_result(2)
    assert (chain.wait(), seen) == (30, [2])
    with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError"):
        broken.wait()
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_threads_wait_for_several_futures() -> None:
    futures: list[Future[int]] = [Future(), Future()]
    both = collect_all(futures)
    threads = [threading.Thread(target=f.set_result, args=(n,)) for n, f in enumerate(futures)]
    for thread in threads:
        thread.start()
    assert wait_all(futures) == [0, 1]
    assert both.wait() == futures
    assert collect_all([]).wait() == []
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])


def test_numpys_functions_take_tensors() -> None:
    numpy = pytest.importorskip("numpy")
    wrapped = torch.compiler.wrap_numpy(lambda a, b: (numpy.add(a, b), a.sum()))
    total, number = wrapped(torch.ones(2), torch.tensor([1.0, 2.0]))
    assert total.tolist() == [2, 3]
    assert number == 2


def test_wishes_about_compilation_change_nothing() -> None:
    compiler = torch.compiler
    assert compiler.nested_compile_region(double) is double
    assert compiler.nested_compile_region()(double) is double
    assert compiler.nonstrict_trace(double) is double
    assert compiler.substitute_in_graph(len)(double) is double
    with pytest.raises(TypeError, match="expects a function"):
        compiler.substitute_in_graph(3)
    assert compiler.set_enable_guard_collectives(True) is False
    assert compiler.set_enable_guard_collectives(False) is True
    with pytest.raises(NotImplementedError, match="no graph is captured"):
        torch._dynamo.explain(double)
    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch._dynamo.config.suppress_errors
    assert not torch._dynamo.config.suppress_errors
    with (
        pytest.raises(AttributeError, match="no_such_setting does not exist"),
        torch._dynamo.config.patch("no_such_setting", 1),
    ):
        raise AssertionError("never entered")


def test_control_flow_is_pythons() -> None:
    x = torch.ones(2, requires_grad=True)
    torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t * 3, (x,)).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="single-element tensor"):
        torch.cond(torch.ones(2), double, double, (x,))
    with pytest.raises(RuntimeError, match="both branches to be callable"):
        torch.cond(True, 3, double)
    found = torch.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (0, torch.ones(1)))
    assert (found[0], found[1].item()) == (3, 8)
    with pytest.raises(RuntimeError, match="as many values as carried_inputs"):
        torch.while_loop(lambda i: True, lambda i: (i, i), (0,))


def test_sizes_are_numbers() -> None:
    assert (torch.sym_max(3, 4.0), torch.sym_min(3, 4.0)) == (4.0, 3.0)
    assert isinstance(torch.sym_min(3, 4.0), float)
    assert isinstance(torch.sym_max(3, 4), int)
    assert (torch.sym_int(-3.7), torch.sym_float(3), torch.sym_sqrt(4)) == (-3, 3.0, 2.0)
    assert (torch.sym_not(3), torch.sym_sum([1, 2]), torch.sym_ite(True, 1, 2)) == (False, 3, 1)
    with pytest.raises(AssertionError, match="expected a number"):
        torch.sym_max(3, "a")
    with pytest.raises(RuntimeError, match="Invalid value range for 3 between"):
        torch.sym_constrain_range(3, min=4)
    torch.sym_constrain_range_for_size(3)
    assert not isinstance(3, torch.SymInt)
