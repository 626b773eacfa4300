"""The optimiser's base: groups, checkpoints, hooks and what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback as torch


def param(*values: float) -> Any:
    return torch.tensor(list(values) or [1.0], requires_grad=True)


@pytest.mark.parametrize(
    ("kind", "options", "error", "text"),
    [
        ("SGD", {"lr": -1}, ValueError, "Invalid learning rate: -1"),
        ("SGD", {"momentum": -0.5}, ValueError, "Invalid momentum value: -0.5"),
        ("SGD", {"weight_decay": -2}, ValueError, "Invalid weight_decay value: -2"),
        ("SGD", {"nesterov": True}, ValueError, "Nesterov momentum requires a momentum"),
        ("SGD", {"fused": True, "foreach": True}, RuntimeError, "cannot be `True` together"),
        ("SGD", {"fused": True, "differentiable": True}, RuntimeError, "`differentiable`"),
        ("Adam", {"lr": float("nan")}, ValueError, "Invalid learning rate: nan"),
        ("Adam", {"eps": -1e-8}, ValueError, "Invalid epsilon value: -1e-08"),
        ("Adam", {"betas": (1.0, 0.9)}, ValueError, "Invalid beta parameter at index 0: 1.0"),
        ("Adam", {"betas": (0.9, -0.1)}, ValueError, "Invalid beta parameter at index 1: -0.1"),
        ("Adam", {"betas": (0, 0.9)}, ValueError, "either both floats or both Tensors"),
        ("AdamW", {"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
        ("AdamW", {"fused": True, "foreach": True}, RuntimeError, "cannot be `True` together"),
    ],
)
def test_options_out_of_range_are_refused(
    kind: str, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        getattr(torch.optim, kind)([param()], **options)
    assert text in str(caught.value)


def test_a_tensor_rate_has_one_element_and_no_foreach() -> None:
    for kind in ("SGD", "Adam"):
        with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
            getattr(torch.optim, kind)([param()], lr=torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match="lr as a Tensor is not supported"):
        torch.optim.Adam([param()], lr=torch.tensor(0.1), foreach=True)


def test_what_is_no_list_of_tensors_is_refused() -> None:
    with pytest.raises(TypeError, match="an iterable of Tensors or dicts"):
        torch.optim.SGD(param())
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        torch.optim.SGD([])
    with pytest.raises(TypeError, match="can only optimize Tensors, but one of the params is int"):
        torch.optim.SGD([3])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        torch.optim.SGD([param() * 2])
    with pytest.raises(TypeError, match="ordered collections"):
        torch.optim.SGD([{"params": {param()}}])
    with pytest.warns(FutureWarning, match="ordered collections"):
        torch.optim.SGD({param()})


def test_groups_must_be_disjoint_dicts_with_names_in_all_or_none() -> None:
    first, second = param(), param()
    optimizer = torch.optim.SGD([first], lr=0.1)
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optimizer.add_param_group([second])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": first})
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [("second", second)]})
    with pytest.raises(ValueError, match="names are missing"):
        torch.optim.SGD([("first", first), second])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([first, first])
    optimizer.add_param_group({"params": second, "lr": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]


def test_a_required_option_must_be_given() -> None:
    from pullback.optim.optimizer import required

    class Plain(torch.optim.Optimizer):
        pass

    with pytest.raises(ValueError, match="required optimization parameter rate"):
        Plain([param()], {"rate": required})
    assert repr(required) == "<required parameter>"
    with pytest.raises(NotImplementedError):
        Plain([param()], {"rate": 1}).step()


def test_names_of_parameters_are_kept_in_the_state_dict() -> None:
    optimizer = torch.optim.SGD([("a", param()), ("b", param())])
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]


def test_repr_lists_the_groups() -> None:
    text = repr(torch.optim.SGD([{"params": [param()]}, {"params": [param()], "lr": 0.5}], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "\n\nParameter Group 1\n" in text
    assert "    lr: 0.5\n" in text
    assert text.endswith("    weight_decay: 0\n)")


def test_zero_grad_drops_or_zeroes() -> None:
    value = param(1.0, 2.0)
    optimizer = torch.optim.SGD([value])
    value.grad = torch.ones(2)
    kept = value.grad
    optimizer.zero_grad(set_to_none=False)
    assert torch.equal(kept, torch.zeros(2))
    assert value.grad is not None
    optimizer.zero_grad()
    assert value.grad is None


def stepped(kind: str, **options: Any) -> tuple[Any, Any]:
    value = param(1.0, -2.0)
    optimizer = getattr(torch.optim, kind)([value], lr=0.1, **options)
    for scale in (1.0, 0.5):
        value.grad = torch.tensor([0.3, 0.7]) * scale
        optimizer.step()
    return value, optimizer


@pytest.mark.parametrize(("kind", "options"), [("SGD", {"momentum": 0.9}), ("AdamW", {})])
def test_a_run_goes_on_from_a_checkpoint(kind: str, options: dict[str, Any]) -> None:
    value, optimizer = stepped(kind, **options)
    twin = value.detach().clone().requires_grad_()
    other = getattr(torch.optim, kind)([twin], lr=0.7, **options)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.param_groups[0]["lr"] == 0.1
    value.grad = twin.grad = torch.tensor([1.0, -1.0])
    optimizer.step()
    other.step()
    assert torch.equal(value.detach(), twin.detach())


def test_loading_casts_state_to_the_parameter_but_keeps_the_counter() -> None:
    _, optimizer = stepped("Adam")
    wide = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    other = torch.optim.Adam([wide])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[wide]["exp_avg"].dtype == torch.float64
    assert other.state[wide]["step"].dtype == torch.float32


def test_loading_other_groups_is_refused() -> None:
    _, optimizer = stepped("SGD")
    two_groups = torch.optim.SGD([{"params": [param()]}, {"params": [param()]}])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        two_groups.load_state_dict(optimizer.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        torch.optim.SGD([param(), param()]).load_state_dict(optimizer.state_dict())


def test_optimizers_can_be_pickled_and_copied() -> None:
    _, optimizer = stepped("Adam")
    for twin in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert repr(twin) == repr(optimizer)
        own = twin.param_groups[0]["params"][0]
        assert twin.state[own]["step"].item() == 2.0
        twin.step()


def test_step_hooks_see_and_change_the_arguments() -> None:
    from pullback.optim import optimizer as base

    seen: list[str] = []
    value, optimizer = stepped("SGD")
    value.grad = torch.ones(2)

    def pre(_: Any, args: Any, kwargs: Any) -> Any:
        seen.append("pre")
        return args, {**kwargs, "closure": lambda: seen.append("closure")}

    handles = [
        optimizer.register_step_pre_hook(pre),
        optimizer.register_step_post_hook(lambda *_: seen.append("post")),
        base.register_optimizer_step_pre_hook(lambda *_: seen.append("global pre")),
        base.register_optimizer_step_post_hook(lambda *_: seen.append("global post")),
    ]
    optimizer.step()
    assert seen == ["global pre", "pre", "closure", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 5
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="tuple of \\(new_args, new_kwargs\\), but got 3"):
        optimizer.step()


def test_state_dict_hooks_run_in_order_and_may_replace() -> None:
    _, optimizer = stepped("SGD")
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda _: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda _: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda _, state: {**state, "extra": 1})
    state = optimizer.state_dict()
    assert seen == ["first", "second"]
    assert state["extra"] == 1
    optimizer.register_load_state_dict_pre_hook(
        lambda _, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.9}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda opt: seen.append("loaded"))
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.9
    assert seen[-1] == "loaded"
