"""Steps on parameters and state that an optimiser has for a while."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

swap_in = torch.optim.swap_in_optimizer_params_and_state


def stepped() -> tuple[list[Any], Any]:
    params = [torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(3, requires_grad=True)]
    optimizer = torch.optim.Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()
    return params, optimizer


def test_a_step_inside_moves_what_was_given_and_leaves_the_optimizer_as_it_was() -> None:
    params, optimizer = stepped()
    given = {f"p{number}": torch.full_like(p, 5.0) for number, p in enumerate(params)}
    for value in given.values():
        value.grad = torch.ones_like(value)
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 2.0
    before = [param.tolist() for param in params]
    groups, own_state = optimizer.param_groups[0]["params"], optimizer.state
    with swap_in(optimizer, given, state):
        assert optimizer.param_groups[0]["params"][0] is given["p0"]
        assert optimizer.param_groups[0]["lr"] == 2.0
        optimizer.step()
    assert optimizer.state is own_state
    assert optimizer.param_groups[0]["params"] is groups
    assert optimizer.param_groups[0]["lr"] == 1e-3
    assert [param.tolist() for param in params] == before
    assert given["p0"].tolist() == pytest.approx([3.0, 3.0], rel=1e-5)
    assert given["p1"].tolist() == pytest.approx([4.5] * 3, rel=1e-5)
    # What a step writes into the given tensors stays.
    assert state["state"][0]["step"].item() == 2
    assert optimizer.state[params[0]]["step"].item() == 1


def test_the_optimizer_is_as_before_after_an_error() -> None:
    params, optimizer = stepped()

    def fail() -> None:
        with swap_in(optimizer, dict(enumerate(params)), optimizer.state_dict()):
            optimizer.param_groups[0]["lr"] = 7.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert optimizer.param_groups[0]["lr"] == 1e-3


def without(state: Any, *path: Any) -> None:
    for key in path[:-1]:
        state = state[key]
    del state[path[-1]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: without(s, "state"), "to be a dict mapping packed parameter ids"),
        (lambda s: s["state"].update({torch.ones(1): {}}), "state keyed by packed parameter ids"),
        (lambda s: s["state"].update({0: 3}), "state entries to be dictionaries"),
        (lambda s: s["state"].update({7: {}}), r"got extra keys \[7\]"),
        (lambda s: s.update(param_groups=()), "to be a list of param-group dicts, got tuple"),
        (lambda s: s["param_groups"].pop(), "a different number of parameter groups"),
        (lambda s: s["param_groups"].__setitem__(0, 3), "each optimizer param group to be a dict"),
        (lambda s: s["param_groups"][0].update(params=["a"]), "keyed by packed parameter ids"),
        (lambda s: s["param_groups"][1].update(params=[1, 2]), "group 1 has a different number"),
        (lambda s: without(s, "param_groups", 0, "eps"), r"Keys only in live: \['eps'\]"),
        (lambda s: s["param_groups"][0].update(x=1), r"Keys only in swap-in: \['x'\]"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(change: Callable[[Any], Any], text: str) -> None:
    params, optimizer = stepped()
    state = copy.deepcopy(optimizer.state_dict())
    change(state)
    with (
        pytest.raises(RuntimeError, match=text),
        swap_in(optimizer, dict(enumerate(params)), state),
    ):
        pass


def test_parameters_and_state_have_to_be_there() -> None:
    params, optimizer = stepped()
    with (
        pytest.raises(RuntimeError, match="the explicit parameter state to match"),
        swap_in(optimizer, {"only": params[0]}, optimizer.state_dict()),
    ):
        pass
    with (
        pytest.raises(RuntimeError, match="requires a DCP-style optimizer state_dict"),
        swap_in(optimizer, dict(enumerate(params)), []),
    ):
        pass
    fresh = torch.optim.Adam(params)
    with (
        pytest.raises(RuntimeError, match="requires initialized optimizer state"),
        swap_in(fresh, dict(enumerate(params)), optimizer.state_dict()),
    ):
        pass
