"""What all optimisers have in common, and the state that each keeps: checkpoints, flags, errors."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

import optim_program as program  # noqa: E402

CHECKPOINTS = json.loads((RECORDED / "optim_courses.json").read_text())["checkpoints"]
CASES = sorted(CHECKPOINTS)
# One case for each optimiser that steps by a kernel on lists.
KERNELS = {
    program.name_of(case): case
    for case in program.OPTIMIZERS
    if program.name_of(case) not in ("SGD", "Adafactor")
}
EVERY = {program.name_of(case): case for case in program.OPTIMIZERS | program.OTHERS}
DENSE = [name for name in EVERY if name not in ("LBFGS", "SparseAdam", "Muon")]


def parameter(*values: float, dtype: Any = torch.float64) -> Any:
    return torch.tensor(list(values) or [1.0, -2.0], dtype=dtype, requires_grad=True)


def make(name: str, params: Any, **options: Any) -> Any:
    return getattr(torch.optim, name)(params, **options)


def assert_near(found: Any, recorded: Any, tolerance: float = 1e-12) -> None:
    """Compares packed values: the same structure, dtypes, shapes and keys in the same order."""
    assert type(found) is type(recorded) or {type(found), type(recorded)} == {int, float}
    if isinstance(found, dict):
        assert list(found) == list(recorded)
        for key in found:
            assert_near(found[key], recorded[key], tolerance)
    elif isinstance(found, list):
        assert len(found) == len(recorded)
        for ours, theirs in zip(found, recorded, strict=True):
            assert_near(ours, theirs, tolerance)
    elif isinstance(found, float):
        assert found == pytest.approx(recorded, rel=tolerance, abs=tolerance)
    else:
        assert found == recorded


def tolerance_of(case: str) -> float:
    # Muon's products are rounded to bfloat16, so that their last bits may turn a digit of it; the
    # directions of L-BFGS come from differences of gradients, which magnify rounding.
    return {"muon": 1e-6, "lbfgs": 1e-9}.get(case.split("_")[0], 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_state_dict_is_the_recorded_one(case: str) -> None:
    found = program.checkpoint_course(torch, case)
    for part in ("params", "state", "end"):
        assert_near(found[part], CHECKPOINTS[case][part], tolerance_of(case))


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_state_dict_can_be_loaded_and_goes_on(case: str) -> None:
    record = CHECKPOINTS[case]
    run = program.Run(torch, case)
    with torch.no_grad():
        for param, values in zip(run.params, record["params"], strict=True):
            param.copy_(torch.tensor(values, dtype=param.dtype).reshape(param.shape))
    run.optimizer.load_state_dict(program.unpack(torch, record["state"]))
    for step in range(3, 6):
        run.step(step)
    # Numbers of the state other than the count take the parameter's dtype when they are loaded, as
    # in PyTorch, and are then no longer rounded to single precision.
    is_cast = run.name in ("ASGD", "NAdam")
    assert_near(run.values(), record["end"], 1e-7 if is_cast else tolerance_of(case))


@pytest.mark.parametrize("case", CASES)
def test_a_pickle_and_a_copy_go_on_as_the_original(case: str) -> None:
    run = program.Run(torch, case)
    for step in range(2):
        run.step(step)
    ends = []
    for twin in (pickle.loads(pickle.dumps(run.optimizer)), copy.deepcopy(run.optimizer)):
        other = program.Run(torch, case)
        other.optimizer, other.params = twin, twin.param_groups[0]["params"]
        other.step(2)
        ends.append(other.values())
    run.step(2)
    assert ends == [run.values()] * 2


@pytest.mark.parametrize("name", KERNELS)
def test_a_checkpoint_with_plain_numbers_is_brought_up_to_date(name: str) -> None:
    run = program.Run(torch, KERNELS[name])
    run.step(0)
    saved = copy.deepcopy(run.optimizer.state_dict())
    numbers = type(run.optimizer)._numbers
    for state in saved["state"].values():
        state.update((key, state[key].item()) for key in numbers)
    for group in saved["param_groups"]:
        for key in ("foreach", "maximize", "differentiable", "capturable", "fused"):
            group.pop(key, None)
    run.optimizer.load_state_dict(saved)
    for state in run.optimizer.state.values():
        for key in numbers:
            assert isinstance(state[key], torch.Tensor)
            assert state[key].dtype == torch.float32
    assert run.optimizer.param_groups[0]["foreach"] is None
    run.step(1)


@pytest.mark.parametrize("name", KERNELS)
def test_a_differentiable_step_moves_as_the_kernel_does(name: str) -> None:
    _, options = program.OPTIMIZERS[KERNELS[name]]
    leaf = parameter(1.0, -2.0, 0.5)
    carried = leaf.detach().clone().requires_grad_() * 1.0
    twins = [(leaf, make(name, [leaf], **options))]
    twins.append((carried, make(name, [carried], differentiable=True, **options)))
    for step in range(4):
        for param, optimizer in twins:
            param.grad = torch.tensor([0.4, -0.2, 0.1 * (-1) ** step], dtype=torch.float64)
            optimizer.step()
    assert carried.grad_fn is not None
    # Factors as `1 - 0.999^t` come from a count of single precision, as in PyTorch.
    tolerance = 1e-4 if name in ("Adam", "AdamW", "NAdam") else 1e-12
    assert torch.allclose(carried.detach(), leaf.detach(), rtol=tolerance, atol=0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_a_differentiable_step_passes_gradcheck(name: str) -> None:
    _, options = program.OPTIMIZERS[KERNELS[name]]

    def moved(start: Any, grad: Any) -> Any:
        param = start.clone()
        optimizer = make(name, [param], differentiable=True, **options)
        for scale in (1.0, 0.5):
            param.grad = grad * scale
            optimizer.step()
        return param

    start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([0.4, -0.3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(moved, (start, grad))


@pytest.mark.parametrize("name", KERNELS)
def test_complex_parameters_move_like_their_real_and_imaginary_parts(name: str) -> None:
    _, options = program.OPTIMIZERS[KERNELS[name]]
    real = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    whole = torch.view_as_complex(real.detach().clone()).requires_grad_()
    optimizers = [make(name, [param], **options) for param in (real, whole)]
    for step in range(4):
        grad = torch.tensor([[0.3, -0.7], [1.5, 0.2]], dtype=torch.float64) * (step - 1.5)
        real.grad, whole.grad = grad, torch.view_as_complex(grad.clone())
        for optimizer in optimizers:
            optimizer.step()
    assert torch.allclose(torch.view_as_real(whole.detach()), real.detach())
    shaped = {key: value for key, value in optimizers[1].state[whole].items() if value.dim()}
    assert all(value.is_complex() for value in shaped.values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", DENSE)
def test_half_precision_moves_as_double_up_to_its_rounding(name: str, dtype: Any) -> None:
    _, options = program.OPTIMIZERS[EVERY[name]]
    options = {key: value for key, value in options.items() if key != "eps"}
    ends = []
    for kind in (dtype, torch.float64):
        param = torch.tensor([1.0, -2.0, 0.5], dtype=kind, requires_grad=True)
        optimizer = make(name, [param], **options)
        for step in range(3):
            param.grad = torch.tensor([0.5, -0.25, 1.0], dtype=kind) * (1 + step)
            optimizer.step()
        ends.append(param.detach().double())
    assert torch.allclose(ends[0], ends[1], atol=0.05)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("LBFGS", "Muon")])
def test_maximize_is_a_step_along_the_negative_gradient(name: str) -> None:
    ends = []
    for maximize in (False, True):
        param = parameter(1.0, -2.0)
        optimizer = make(name, [param], maximize=maximize)
        for step in range(3):
            grad = torch.tensor([0.4, -0.2 * step], dtype=torch.float64)
            grad = -grad if maximize else grad
            param.grad = grad.to_sparse() if name == "SparseAdam" else grad
            optimizer.step()
        ends.append(param.tolist())
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", DENSE)
def test_a_learning_rate_may_be_a_tensor_of_one_element(name: str) -> None:
    ends = []
    for lr in (0.25, torch.tensor(0.25), torch.tensor([[0.25]])):
        param = parameter(1.0, -2.0)
        optimizer = make(name, [param], lr=lr)
        for _ in range(2):
            param.grad = torch.tensor([0.4, -0.2], dtype=torch.float64)
            optimizer.step()
        ends.append(param.tolist())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)
    assert ends[2] == pytest.approx(ends[0], rel=1e-6)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        make(name, [parameter()], lr=torch.tensor([0.1, 0.2]))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    *((name, {"lr": -1}, "Invalid learning rate: -1") for name in DENSE if name != "Adafactor"),
    *((name, {"lr": float("nan")}, "nan") for name in EVERY if name != "SGD"),
    *(
        (name, {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0")
        for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam")
    ),
    *(
        (name, {"betas": (0.0, -0.5)}, "Invalid beta parameter at index 1: -0.5")
        for name in ("Adamax", "NAdam", "RAdam", "SparseAdam")
    ),
    *(
        (name, {"weight_decay": -0.5}, "Invalid weight_decay value: -0.5")
        for name in KERNELS
        if name != "Rprop"
    ),
    *(
        (name, {"eps": -1.0}, "Invalid epsilon value: -1.0")
        for name in (*KERNELS, "SparseAdam")
        if name not in ("ASGD", "Rprop")
    ),
    ("Adadelta", {"rho": 1.1}, "Invalid rho value: 1.1"),
    ("Adagrad", {"lr_decay": -0.5}, "Invalid lr_decay value: -0.5"),
    ("Adagrad", {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value value: -1"),
    ("ASGD", {"lambd": -0.5}, "Invalid lambd value: -0.5"),
    ("ASGD", {"alpha": -0.5}, "Invalid alpha value: -0.5"),
    ("NAdam", {"momentum_decay": -0.2}, "Invalid momentum_decay value: -0.2"),
    ("RMSprop", {"momentum": -1.0}, "Invalid momentum value: -1.0"),
    ("RMSprop", {"alpha": -1.0}, "Invalid alpha value: -1.0"),
    ("Rprop", {"etas": (1.0, 0.5)}, "Invalid eta values: 1.0, 0.5"),
    ("SparseAdam", {"lr": 0.0}, "Invalid learning rate: 0.0"),
    ("SparseAdam", {"eps": 0.0}, "Invalid epsilon value: 0.0"),
    ("Adafactor", {"lr": -1}, "Learning rate should be >= 0 but is: -1"),
    ("Adafactor", {"beta2_decay": 0.8}, "beta2_decay should be <= 0 but is: 0.8"),
    ("Adafactor", {"eps": (-1e-30, 1e-3)}, "epsilon1 should be >= 0 but is: -1e-30"),
    ("Adafactor", {"eps": (None, -1.0)}, "epsilon2 should be >= 0 but is: -1.0"),
    ("Adafactor", {"d": 0.0}, "Clipping threshold d should be >= 1 but is: 0.0"),
    ("Adafactor", {"weight_decay": -1}, "weight_decay should be >= 0 but is: -1"),
    ("LBFGS", {"lr": -1}, "Invalid learning rate: -1"),
    ("Muon", {"lr": -1}, "Learning rate should be >= 0 but is: -1"),
    ("Muon", {"momentum": -1}, "momentum should be >= 0 but is: -1"),
    ("Muon", {"weight_decay": -1}, "weight decay should be >= 0 but is: -1"),
    ("Muon", {"adjust_lr_fn": "x"}, "Adjust learning rate function x is not supported"),
]


@pytest.mark.parametrize(("name", "options", "text"), WRONG)
def test_options_out_of_range_are_refused(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        make(name, [torch.ones(2, 2, requires_grad=True)], **options)


@pytest.mark.parametrize(
    "name", [name for name in EVERY if name not in ("SGD", "Adagrad", "SparseAdam", "LBFGS")]
)
def test_sparse_gradients_are_refused_and_nothing_moves(name: str) -> None:
    param = torch.ones(2, 2, requires_grad=True)
    optimizer = make(name, [param])
    param.grad = torch.ones(2, 2).to_sparse()
    called = "Adam" if name == "AdamW" else name
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"{called} does not support sparse gradients"):
            optimizer.step()
        assert torch.equal(param.detach(), torch.ones(2, 2))


def test_sparse_gradients_go_where_they_are_taken_and_nowhere_else() -> None:
    param = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    dense = param.detach().clone().requires_grad_()
    optimizers = [make("Adagrad", [value], lr=0.1, eps=1e-3) for value in (param, dense)]
    for step in range(3):
        places = torch.tensor([[step, 3, step]])
        values = torch.arange(6, dtype=torch.float64).reshape(3, 2)
        param.grad = torch.sparse_coo_tensor(places, values, (4, 2))
        dense.grad = param.grad.to_dense()
        for optimizer in optimizers:
            optimizer.step()
    assert torch.allclose(param.detach(), dense.detach(), rtol=1e-12)
    decays = make("Adagrad", [param], weight_decay=0.1)
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse"):
        decays.step()
    fused = make("Adagrad", [param], fused=True)
    with pytest.raises(RuntimeError, match="`fused` does not support sparse grad"):
        fused.step()
    param.grad = param.grad.to_dense()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        make("SparseAdam", [param]).step()


def test_parameters_that_an_optimizer_cannot_move_are_refused() -> None:
    whole = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
    whole.grad = torch.ones(2, 2, dtype=torch.complex64)
    for name in ("Adafactor", "Muon"):
        with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
            make(name, [whole]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]: SparseAdam"):
        make("SparseAdam", [whole])
    sparse = torch.ones(2, 2).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 1\]\]: SparseAdam"):
        make("SparseAdam", [torch.ones(2, requires_grad=True), sparse])
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found"):
        make("Muon", [parameter()])
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        make("LBFGS", [{"params": [parameter()]}, {"params": [parameter()]}])
    param = parameter()
    param.grad = torch.ones_like(param)
    optimizer = make("LBFGS", [param], line_search_fn="armijo")
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(lambda: (param * param).sum())


@pytest.mark.parametrize(
    "name", [name for name in KERNELS if name not in ("Adagrad", "Adam", "AdamW")]
)
def test_a_capturable_step_needs_an_accelerator(name: str) -> None:
    param = parameter()
    param.grad = torch.ones_like(param)
    with pytest.raises(AssertionError, match="If capturable=True"):
        make(name, [param], capturable=True).step()


def test_fused_adagrad_has_the_rules_of_the_family() -> None:
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        make("Adagrad", [parameter()], fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        make("Adagrad", [parameter()], fused=True, foreach=True)
    whole = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    whole.grad = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating"):
        make("Adagrad", [whole], fused=True).step()
    param = parameter(1.0)
    optimizer = make("Adagrad", [param], fused=True)
    param.grad = torch.ones_like(param)
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    assert param.tolist() == [1.0]
    assert optimizer.state[param]["step"].item() == 0
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.zeros(())
    optimizer.step()
    assert param.grad.tolist() == [0.25]
    assert optimizer.state[param]["step"].item() == 1
    optimizer.share_memory()
    assert optimizer.state[param]["sum"].is_shared()


@pytest.mark.parametrize("name", [name for name in EVERY if name != "LBFGS"])
def test_frozen_parameters_and_empty_groups_stay(name: str) -> None:
    still, moving = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    frozen = torch.ones(2, 2)
    optimizer = make(name, [{"params": []}, {"params": [still, moving, frozen]}])
    optimizer.add_param_group({"params": [torch.zeros(0, 3, requires_grad=True)], "lr": 0.5})
    empty = optimizer.param_groups[2]["params"][0]
    for _ in range(2):
        moving.grad, empty.grad = torch.full((2, 2), 0.5), torch.zeros(0, 3)
        if name in ("Adafactor", "Muon"):
            # The mean of no elements has no value.
            empty.grad = None
        if name == "SparseAdam":
            moving.grad, empty.grad = moving.grad.to_sparse(), empty.grad.to_sparse()
        optimizer.step()
    assert torch.equal(still.detach(), torch.ones(2, 2))
    assert torch.equal(frozen, torch.ones(2, 2))
    assert not torch.equal(moving.detach(), torch.ones(2, 2))
    optimizer.zero_grad()
    assert moving.grad is None
    before = moving.detach().clone()
    optimizer.step()
    assert torch.equal(moving.detach(), before)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "SparseAdam"])
def test_a_closure_is_evaluated_with_gradients_and_hooks_run(name: str) -> None:
    param = torch.ones(2, 2, requires_grad=True)
    optimizer = make(name, [param])
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert (param * param).sum().item() < 4.0
    assert seen == ["pre", "post"]


SCHEDULES: dict[str, Any] = {
    "StepLR": lambda s, o: s.StepLR(o, 1, 0.5),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.5),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda t: 0.5**t),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=0),
}


@pytest.mark.parametrize("tensor_lr", [False, True])
@pytest.mark.parametrize("name", [name for name in EVERY if name != "LBFGS"])
def test_schedules_change_the_rate_of_each_optimizer(name: str, tensor_lr: bool) -> None:
    for kind, schedule_of in SCHEDULES.items():
        param = torch.ones(2, 2, requires_grad=True)
        optimizer = make(name, [param], lr=torch.tensor(0.5) if tensor_lr else 0.5)
        schedule = schedule_of(torch.optim.lr_scheduler, optimizer)
        for _ in range(2):
            param.grad = torch.ones(2, 2)
            if name == "SparseAdam":
                param.grad = param.grad.to_sparse()
            optimizer.step()
            schedule.step(*[1.0] if kind == "ReduceLROnPlateau" else [])
        expected = 0.25 if kind == "ReduceLROnPlateau" else 0.125
        assert float(optimizer.param_groups[0]["lr"]) == expected


FUNCTIONS = [name for name in torch.optim.functional.__all__ if name != "sparse_adam"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functional_form_is_reachable_by_its_names(name: str) -> None:
    function = getattr(torch.optim.functional, name)
    assert function.__module__ == "pullback.optim.functional"
    hidden = "_" if name in ("adafactor", "muon") else ""
    module = __import__(f"pullback.optim.{hidden}{name}", fromlist=[name])
    assert inspect.signature(getattr(module, name)) == inspect.signature(function)
    if name not in ("adafactor", "muon"):
        assert hasattr(__import__("pullback.optim._functional", fromlist=[name]), name)


def test_a_functional_step_is_the_step_of_the_class() -> None:
    param, twin = parameter(), parameter()
    optimizer = make("RMSprop", [param], lr=0.1)
    square, step = torch.zeros_like(twin), torch.tensor(0.0)
    for _ in range(3):
        param.grad = torch.tensor([0.5, -1.0], dtype=torch.float64)
        optimizer.step()
        with torch.no_grad():
            torch.optim.functional.rmsprop(
                [twin], [param.grad], [square], [], [], [step],
                lr=0.1, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
            )  # fmt: skip
    assert twin.tolist() == param.tolist()
    assert step.item() == 3
    with pytest.raises(RuntimeError, match="API has changed, `state_steps` argument must contain"):
        torch.optim.functional.rmsprop(
            [twin], [param.grad], [square], [], [], [3],
            lr=0.1, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
        )  # fmt: skip
    with pytest.raises(RuntimeError, match="Foreach is not supported for Muon yet"):
        torch.optim.functional.muon(
            [], [], [], foreach=True, lr=0.1, weight_decay=0.0, momentum=0.9, nesterov=True,
            ns_coefficients=(1.0, 1.0, 1.0), ns_steps=1, eps=1e-7, adjust_lr_fn=None,
            has_complex=False,
        )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("Adam", "AdamW")])
def test_a_refused_step_is_not_counted_and_moves_nothing(name: str) -> None:
    run = program.Run(torch, KERNELS[name], "float32")
    run.step(0)
    optimizer = run.optimizer
    shaped = next(key for key, value in optimizer.state[run.params[0]].items() if value.dim() == 2)
    optimizer.state[run.params[2]][shaped] = torch.ones(7)
    before = run.values(), copy.deepcopy(optimizer.state_dict())
    with pytest.raises(RuntimeError, match="must have same dtype, device and shape"):
        run.step(1)
    assert run.values() == before[0]
    assert program.pack(torch, optimizer.state_dict()) == program.pack(torch, before[1])


def test_multi_tensor_names_are_the_optimizers_with_foreach() -> None:
    from pullback.optim import _multi_tensor

    optimizer = _multi_tensor.Adam([parameter()])
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.defaults["foreach"] is True
