"""Steps on other parameters and another state than the optimiser's own, for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import Tensor
from .optimizer import Optimizer, ParamGroup, StateDict

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: StateDict,
) -> Iterator[None]:
    """Within the context `optimizer` has these parameters, state and options; then its own again.

    Where `load_state_dict` keeps the optimiser's parameters, this replaces them too: `step()` moves
    `swapin_parameters`, which are given in the order of the optimiser's. `swapin_optim_state` is
    shaped as `optimizer.state_dict()`. What a step writes into its tensors in place stays; entries
    that it adds to the state or replaces in it are dropped at the end.

    Raises `RuntimeError` for an optimiser without state and for what does not fit its groups.
    """
    state, groups, params = _check(optimizer, swapin_parameters, swapin_optim_state)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        swapped: defaultdict[Any, Any] = defaultdict(dict)
        for group, given, tensors in zip(optimizer.param_groups, groups, params, strict=True):
            group.update({**given, "params": tensors})
            for param, number in zip(tensors, given["params"], strict=True):
                swapped[param] = dict(state.get(number, {}))
        optimizer.state = swapped
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise RuntimeError(text)


def _check(
    optimizer: Optimizer, parameters: dict[str, Tensor], optim_state: StateDict
) -> tuple[dict[Any, Any], list[ParamGroup], list[list[Tensor]]]:
    """The state, the groups, and the parameters of each group."""
    _require(bool(optimizer.state), f"{_NAME} requires initialized optimizer state.")
    _require(isinstance(optim_state, dict), f"{_NAME} requires a DCP-style optimizer state_dict.")
    state = _check_state(optim_state.get("state"))
    groups = optim_state.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group "
            f"dicts, got {type(groups).__name__}."
        )
    _require(
        len(groups) == len(optimizer.param_groups),
        "swapin_optim_state has a different number of parameter groups than the live optimizer.",
    )
    for index, (own, given) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        _check_group(index, own, given)
    remaining = iter(parameters.values())
    params = []
    for given in groups:
        tensors = [param for _, param in zip(given["params"], remaining, strict=False)]
        _require(
            len(tensors) == len(given["params"]),
            f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
            "ordering.",
        )
        params.append(tensors)
    known = {number for given in groups for number in given["params"]}
    extra = [key for key in state if key not in known]
    _require(
        not extra,
        f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids "
        f"from param_groups[*]['params']; got extra keys {extra!r}.",
    )
    return state, groups, params


def _check_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter "
            f"ids to per-param state dicts, got {type(state).__name__}."
        )
    _require(
        not any(isinstance(key, Tensor) for key in state),
        f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.",
    )
    _require(
        all(isinstance(value, dict) for key, value in state.items() if isinstance(key, int)),
        f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.",
    )
    return state


def _check_group(index: int, own: ParamGroup, given: Any) -> None:
    _require(
        isinstance(given, dict), f"{_NAME} requires each optimizer param group to be a dictionary."
    )
    numbers = given.get("params")
    _require(
        isinstance(numbers, list) and all(isinstance(number, int) for number in numbers),
        f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed "
        "by packed parameter ids.",
    )
    _require(
        len(numbers) == len(own["params"]),
        f"swapin_optim_state param group {index} has a different number of params than the live "
        "optimizer param group.",
    )
    only_given = [key for key in given if key not in own]
    only_own = [key for key in own if key not in given]
    _require(
        not only_given and not only_own,
        f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the "
        f"live optimizer group keys for group {index}. Keys only in swap-in: {only_given}. Keys "
        f"only in live: {only_own}.",
    )


swap_in_optimizer_params_and_state.__module__ = __name__.rpartition(".")[0]
