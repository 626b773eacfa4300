"""One tensor, one object: identity, attributes and lifetimes of the Python faces of tensors."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import memory


class Named(torch.Tensor):
    """A subclass."""


@pytest.fixture
def no_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_the_same_object_comes_back() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    y.backward(torch.ones(2))
    assert x.grad is x.grad
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn.next_functions[0][0].variable is x
    assert x.add_ is not None
    view = y[:1]
    assert view._base is y
    assert view._base is view._base
    assert y.requires_grad_() is y
    with torch.no_grad():
        assert x.add_(1) is x
        assert x.mul_(2) is x


def test_saved_tensors_are_the_same_objects() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x
    out = x.exp()
    assert out.grad_fn._saved_result.data_ptr() == out.data_ptr()
    assert out.grad_fn._saved_result.grad_fn is out.grad_fn


def test_attributes_survive_while_the_graph_lives(no_gc: None) -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = "kept"
    address = id(x)
    y = x * 2
    del x
    again = y.grad_fn.next_functions[0][0].variable
    assert id(again) == address
    assert again.note == "kept"


def test_attributes_survive_in_grad(no_gc: None) -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.zeros(2)
    x.grad.note = [1]
    assert x.grad.note == [1]
    kept = weakref.ref(x.grad)
    assert kept() is x.grad
    x.grad = None
    assert kept() is None


def test_attributes_survive_as_base(no_gc: None) -> None:
    x = torch.ones(4)
    x.note = {"a": 1}
    view = x[1:]
    gone = weakref.ref(x)
    del x
    assert view._base.note == {"a": 1}
    assert gone() is view._base
    del view
    assert gone() is None


def test_subclasses_survive(no_gc: None) -> None:
    x = torch.ones(2).as_subclass(Named).requires_grad_()
    y = torch.Tensor.clone(x)
    fn = y.grad_fn
    del x
    # The result became one of the subclass by one more node.
    variable = fn.next_functions[0][0].next_functions[0][0].variable
    assert type(variable) is Named
    holder = torch.ones(2, requires_grad=True)
    holder.grad = torch.zeros(2).as_subclass(Named)
    assert type(holder.grad) is Named


def test_parameters_survive(no_gc: None) -> None:
    p = torch.nn.Parameter(torch.ones(2))
    fn = (p * 2).grad_fn
    del p
    assert type(fn.next_functions[0][0].variable) is torch.nn.Parameter


def test_weak_references_see_a_resurrected_object(no_gc: None) -> None:
    x = torch.ones(2, requires_grad=True)
    watch = weakref.ref(x)
    y = x * 2
    del x
    assert watch() is not None
    again = y.grad_fn.next_functions[0][0].variable
    assert watch() is again
    del again, y
    assert watch() is None


def test_death_without_the_collector(no_gc: None) -> None:
    def plain() -> Any:
        return torch.ones(3)

    def recorded() -> Any:
        return (torch.ones(3, requires_grad=True) * 2).sum()

    def run() -> Any:
        x = torch.ones(3, requires_grad=True)
        (x * x).sum().backward()
        return x

    def graph_of_grad() -> Any:
        x = torch.ones(3, requires_grad=True)
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return g

    def view() -> Any:
        return torch.ones(3)[1:]

    def output_saved() -> Any:
        return torch.ones(3, requires_grad=True).exp().tanh().sigmoid()

    for make in (plain, recorded, run, graph_of_grad, view, output_saved):
        tensor = make()
        watch = weakref.ref(tensor)
        tensor.note = object()
        note = weakref.ref(tensor)
        del tensor
        assert watch() is None, make.__name__
        assert note() is None


def test_nodes_die_without_the_collector(no_gc: None) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * x
    called = []
    y.grad_fn.register_hook(lambda *_: called.append(1))
    y.register_hook(lambda g: called.append(2))
    watch = weakref.ref(y)
    y.sum().backward()
    del y
    assert watch() is None
    assert sorted(called) == [1, 2]


class Marker:
    """Something that can be watched."""


def watched(build: Callable[[Marker], None]) -> None:
    marker = Marker()
    watch = weakref.ref(marker)
    build(marker)
    del marker
    gc.collect()
    gc.collect()
    assert watch() is None


def test_cycles_through_attributes_are_collected() -> None:
    def itself(marker: Marker) -> None:
        x = torch.ones(2)
        x.me = x
        x.marker = marker

    def two(marker: Marker) -> None:
        x, y = torch.ones(2), torch.ones(2)
        x.other, y.other = y, x
        x.marker = marker

    def containers(marker: Marker) -> None:
        x = torch.ones(2, requires_grad=True)
        x.parts = [{"x": x}, marker]

    for build in (itself, two, containers):
        watched(build)


def test_cycles_through_hooks_of_leaves_are_collected() -> None:
    def hook(marker: Marker) -> None:
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda g: [x, marker].clear())

    def after(marker: Marker) -> None:
        x = torch.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda leaf: [x, marker].clear())

    watched(hook)
    watched(after)


def test_a_live_cycle_is_left_alone() -> None:
    x = torch.ones(2, requires_grad=True)
    x.me = x
    x.marker = Marker()
    y = x * 2
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is not None
    again = y.grad_fn.next_functions[0][0].variable
    assert again.me is again
    assert isinstance(again.marker, Marker)


def test_slots_and_dict() -> None:
    x = torch.ones(1)
    assert x.__dict__ == {}
    x.a = 1
    assert x.__dict__ == {"a": 1}
    del x.a
    with pytest.raises(AttributeError):
        _ = x.a
    with pytest.raises(AttributeError):
        x.shape = (2,)


def test_hash_is_identity() -> None:
    x, y = torch.ones(2), torch.ones(2)
    assert len({x, y, x}) == 2
    assert hash(x) == id(x)
    assert {x: 1}[x] == 1


def test_copies_are_other_objects() -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = [1]
    for other in (x.detach(), x.clone(), x.data, copy.copy(x), copy.deepcopy(x), x.view(2)):
        assert other is not x
    assert copy.deepcopy(x).note == [1]
    assert copy.deepcopy(x).note is not x.note
    assert not hasattr(x.detach(), "note")


ROUNDS = 1000


def rounds() -> dict[str, Callable[[], object]]:
    weight = torch.randn(8, 8, requires_grad=True)

    def backward() -> None:
        (weight @ torch.ones(8)).relu().sum().backward()

    def twice() -> None:
        (g,) = torch.autograd.grad((weight**3).sum(), weight, create_graph=True)
        torch.autograd.grad(g.sum(), weight)

    def inplace() -> None:
        x = weight.clone()
        x[1:].mul_(2)
        x.sum().backward()

    def graph_without_backward() -> object:
        return weight.exp().log().sin()

    def numpy() -> object:
        return torch.from_numpy(torch.ones(4).numpy())

    def errors() -> None:
        with pytest.raises(RuntimeError):
            (weight * 2).backward()
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)

    def hooks() -> None:
        x = weight * 2
        x.register_hook(lambda g: g * 2)
        x.sum().backward()

    return {
        "backward": backward,
        "twice": twice,
        "inplace": inplace,
        "unused": graph_without_backward,
        "numpy": numpy,
        "errors": errors,
        "hooks": hooks,
    }


@pytest.mark.parametrize("name", rounds())
def test_loops_hold_no_memory(name: str) -> None:
    step = rounds()[name]
    for _ in range(5):
        step()
    gc.collect()
    before = memory.live_bytes()
    for _ in range(ROUNDS):
        step()
    gc.collect()
    assert memory.live_bytes() == before


def test_memory_comes_back() -> None:
    gc.collect()
    before = memory.live_bytes()
    big = torch.zeros(1 << 20)
    assert memory.live_bytes() >= before + (4 << 20)
    del big
    assert memory.live_bytes() == before
