"""Steps of the optimisers: recorded courses, and paths that have to agree with each other."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

import optim_program as program  # noqa: E402

RECORD = json.loads((RECORDED / "optim_courses.json").read_text())
COURSES = RECORD["optimizers"]
CASES = sorted(COURSES)
# Those that have the option, which is the same kernel for all.
FUSED = [case for case in CASES if program.name_of(case) in ("SGD", "Adam", "AdamW", "Adagrad")]


def assert_close(found: list[list[float]], expected: list[list[float]], tolerance: float) -> None:
    for values, recorded in zip(found, expected, strict=True):
        assert values == pytest.approx(recorded, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("gaps", ["full", "gaps"])
@pytest.mark.parametrize("case", CASES)
def test_a_course_equals_the_recorded_one(case: str, gaps: str) -> None:
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-6)):
        course = program.optimizer_course(torch, case, gaps == "gaps", dtype)
        assert_close(course, COURSES[case][gaps], tolerance)


@pytest.mark.parametrize("case", CASES)
def test_the_choice_of_implementation_does_not_change_the_course(case: str) -> None:
    choices: list[dict[str, Any]] = [{"foreach": True}, {"foreach": False}]
    for options in [*choices, {"fused": True}] if case in FUSED else choices:
        course = program.optimizer_course(torch, case, dtype="float64", **options)
        assert_close(course, COURSES[case]["full"], 1e-12)


# How far 200 steps may lead apart, in units of the dtype's precision: PyTorch fuses some products
# with the sums that they go into, ours are rounded.
UNITS = 10


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_two_hundred_steps_lead_where_they_led_when_recorded(case: str, dtype: str) -> None:
    found = program.long_course(torch, case, dtype)
    unit = torch.finfo(getattr(torch, dtype)).eps
    assert_close(found, RECORD["long"][case][dtype], UNITS * unit)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_complex_parameters_move_like_their_real_and_imaginary_parts(kind: str) -> None:
    real = torch.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    whole = torch.view_as_complex(real.detach().clone()).requires_grad_()
    optimizers = [getattr(torch.optim, kind)([param], lr=0.1) for param in (real, whole)]
    for step in range(4):
        grad = torch.tensor([[0.3, -0.7], [1.5, 0.2]]) * (step + 1)
        real.grad, whole.grad = grad, torch.view_as_complex(grad.clone())
        for optimizer in optimizers:
            optimizer.step()
    assert torch.allclose(torch.view_as_real(whole.detach()), real.detach())


def test_mixed_dtypes_in_one_group_each_move_by_their_own_gradient() -> None:
    params = [
        torch.ones(3, dtype=dtype).requires_grad_() for dtype in (torch.float32, torch.float64)
    ]
    for kind, options in (("Adam", {}), ("SGD", {"momentum": 0.9}), ("SGD", {})):
        optimizer = getattr(torch.optim, kind)(params, lr=0.1, **options)
        before = [param.detach().clone() for param in params]
        for param in params:
            param.grad = torch.ones_like(param)
        optimizer.step()
        for param, old in zip(params, before, strict=True):
            assert torch.allclose(param.detach(), old - 0.1, atol=1e-6)


def test_a_differentiable_step_carries_gradient_to_the_start_and_to_the_rate() -> None:
    start = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    param = start.clone()
    optimizer = torch.optim.SGD([param], lr=lr, differentiable=True)
    param.grad = start**2
    optimizer.step()
    by_start, by_lr = torch.autograd.grad(param.sum(), [start, lr])
    # d/dx (x - lr x^2) = 1 - 2 lr x, and d/dlr = -sum x^2.
    assert torch.allclose(by_start, 1 - 0.2 * start.detach())
    assert by_lr.item() == pytest.approx(-5.0)


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_a_differentiable_adam_step_moves_as_the_plain_one(kind: str) -> None:
    start = torch.tensor([1.0, -2.0], dtype=torch.float64)
    leaf = start.clone().requires_grad_()
    carried = (start.clone().requires_grad_() * 1.0)  # fmt: skip
    for param, differentiable in ((leaf, False), (carried, True)):
        optimizer = getattr(torch.optim, kind)([param], lr=0.1, differentiable=differentiable)
        param.grad = torch.tensor([0.4, -0.2], dtype=torch.float64)
        optimizer.step()
    assert carried.grad_fn is not None
    assert torch.allclose(carried.detach(), leaf.detach())


def test_state_has_the_recorded_layout() -> None:
    param = torch.ones(2, 3, requires_grad=True)
    param.grad = torch.ones(2, 3)
    adam = torch.optim.Adam([param], amsgrad=True)
    adam.step()
    adam.step()
    state = adam.state[param]
    assert sorted(state) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    assert state["step"].item() == 2.0
    assert state["step"].dtype == torch.float32
    assert state["step"].shape == ()
    sgd = torch.optim.SGD([param], momentum=0.5)
    sgd.step()
    assert torch.equal(sgd.state[param]["momentum_buffer"], torch.ones(2, 3))
    plain = torch.optim.SGD([param])
    plain.step()
    assert len(plain.state) == 0


def test_steps_build_no_graph_and_leave_grad_mode_alone() -> None:
    param = torch.ones(2, requires_grad=True)
    param.grad = torch.ones(2)
    torch.optim.SGD([param], lr=0.1).step()
    assert param.is_leaf
    assert torch.is_grad_enabled()


def test_a_closure_runs_with_gradients_and_gives_its_loss() -> None:
    param = torch.tensor([2.0], requires_grad=True)
    optimizer = torch.optim.SGD([param], lr=0.25)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert param.item() == 1.0


def test_empty_parameters_and_groups_without_gradients_take_part() -> None:
    empty, still = torch.zeros(0, 3, requires_grad=True), torch.ones(2, requires_grad=True)
    for kind in ("SGD", "Adam"):
        optimizer = getattr(torch.optim, kind)([{"params": [empty]}, {"params": [still]}], lr=0.1)
        empty.grad = torch.zeros(0, 3)
        optimizer.step()
        assert torch.equal(still.detach(), torch.ones(2))


def test_a_capturable_step_needs_an_accelerator() -> None:
    param = torch.ones(2, requires_grad=True)
    param.grad = torch.ones(2)
    with pytest.raises(AssertionError, match="If capturable=True"):
        torch.optim.Adam([param], capturable=True).step()


_VF = torch._C._VariableFunctions
STEPS: dict[str, Callable[..., None]] = {
    "sgd": lambda p, g, b: _VF._fused_sgd_(
        p, g, b, weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0,
        nesterov=False, maximize=False, is_first_step=False,
    ),
    "adam": lambda p, g, b: _VF._fused_adam_(
        p, g, b, [torch.ones_like(x) for x in b], [], [torch.tensor(1.0) for _ in p], lr=0.1,
        beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda p, g, b: g.append(torch.ones(2, dtype=torch.float64)), RuntimeError, "same dtype"),
        (lambda p, g, b: g.append(torch.ones(3)), RuntimeError, "and shape"),
        (lambda p, g, b: p[2].requires_grad_(), RuntimeError, "a leaf Variable that requires grad"),
        (lambda p, g, b: p.append(torch.zeros(()).expand(2)), RuntimeError, "written-to tensor"),
        (lambda p, g, b: b.append(p[2]), RuntimeError, "written-to tensor"),
        (
            lambda p, g, b: [x.append(torch.ones(2, dtype=torch.int64)) for x in (p, g, b)],
            NotImplementedError,
            "not implemented for 'Long'",
        ),
    ],
)
def test_a_step_that_is_refused_has_moved_no_parameter(
    kind: str, change: Callable[..., Any], error: type[Exception], text: str
) -> None:
    lists = [[torch.ones(2) for _ in range(3)] for _ in range(3)]
    lengths = [len(part) for part in lists]
    change(*lists)
    for part, length in zip(lists, lengths, strict=True):
        # What was put at the end takes the third place.
        part[2:] = part[length:] or part[2:]
    with pytest.raises(error, match=text):
        STEPS[kind](*lists)
    for part in lists:
        assert all(tensor.tolist() == [1.0, 1.0] and tensor._version == 0 for tensor in part[:2])


def test_a_refused_step_is_not_counted() -> None:
    params = [torch.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.Adam(params)
    for param in params:
        param.grad = torch.ones(2)
    optimizer.step()
    optimizer.state[params[1]]["exp_avg"] = torch.ones(3)
    before = params[0].tolist()
    with pytest.raises(RuntimeError, match="exp_avgs must have same dtype, device and shape"):
        optimizer.step()
    assert params[0].tolist() == before
    assert [state["step"].item() for state in optimizer.state.values()] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"fused": True})],
)
@pytest.mark.parametrize("steps", [0, 1])
def test_a_refused_step_moves_no_parameter_of_another_dtype(
    kind: str, options: dict[str, Any], steps: int
) -> None:
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float32)
    params = [torch.ones(2, dtype=dtype, requires_grad=True) for dtype in dtypes]
    optimizer = getattr(torch.optim, kind)(params, lr=0.5, **options)
    for param in params[: 2 * steps]:
        param.grad = torch.ones_like(param)
    for _ in range(steps):
        optimizer.step()
    for param in params:
        param.grad = torch.ones_like(param)
    before = [param.tolist() for param in params]
    # The last parameter repeats one element, which no step can write.
    params[3].data = torch.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="written-to tensor"):
        optimizer.step()
    assert [param.tolist() for param in params] == before
    counts = [state["step"].item() for state in optimizer.state.values() if "step" in state]
    assert all(count <= steps for count in counts)
    params[3].data = torch.ones(2)
    optimizer.step()
    assert all(param[0] < old[0] for param, old in zip(params, before, strict=True))


def test_a_step_that_found_an_infinity_starts_no_momentum() -> None:
    param = torch.ones(2, requires_grad=True)
    param.grad = torch.ones(2)
    optimizer = torch.optim.SGD([param], lr=0.5, momentum=0.9, fused=True)
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    assert param.tolist() == [1, 1]
    optimizer.found_inf = None
    optimizer.step()
    assert param.tolist() == [0.5, 0.5]


def test_a_parameter_may_be_its_own_gradient() -> None:
    param = torch.full((3,), 2.0, requires_grad=True)
    param.grad = param.detach()
    torch.optim.SGD([param], lr=0.5).step()
    assert param.tolist() == [1.0, 1.0, 1.0]
