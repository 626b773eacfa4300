"""Schedules: recorded courses, closed forms, checkpoints, warnings and what is refused."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

import optim_program as program  # noqa: E402

RECORD = json.loads((RECORDED / "optim_courses.json").read_text())
lr_scheduler = torch.optim.lr_scheduler


def quietly(action: Any) -> Any:
    """Composites of schedules step their parts in ways that warn, in PyTorch as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action()


def sgd(lr: Any = 1.0, **options: Any) -> Any:
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=lr, **options)


@pytest.mark.parametrize("case", sorted(RECORD["schedules"]))
def test_a_course_equals_the_recorded_one(case: str) -> None:
    course = quietly(lambda: program.schedule_course(torch, case))
    for found, recorded in zip(course, RECORD["schedules"][case], strict=True):
        assert found == pytest.approx(recorded, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("case", sorted(RECORD["plateau"]))
def test_a_plateau_lowers_the_rate_when_recorded(case: str) -> None:
    mode, threshold = case.split()
    assert program.plateau_course(torch, mode, threshold) == pytest.approx(RECORD["plateau"][case])


@pytest.mark.parametrize(
    "case", ["step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine"]
)
def test_the_closed_form_agrees_with_the_recursion(case: str) -> None:
    optimizer, schedule = program.make_scheduled(torch, case)
    _, jumping = program.make_scheduled(torch, case)
    for epoch in range(1, 8):
        optimizer.step()
        schedule.step()
        quietly(lambda epoch=epoch: jumping.step(epoch))
        assert jumping.get_last_lr() == pytest.approx(schedule.get_last_lr())


@pytest.mark.parametrize("case", sorted(RECORD["schedules"]))
def test_a_schedule_goes_on_from_a_checkpoint(case: str) -> None:
    def run() -> None:
        optimizer, schedule = program.make_scheduled(torch, case)
        for _ in range(9):
            optimizer.step()
            schedule.step()
        other_optimizer, other = program.make_scheduled(torch, case)
        other.load_state_dict(schedule.state_dict())
        other_optimizer.load_state_dict(optimizer.state_dict())
        for _ in range(6):
            schedule.step()
            other.step()
            assert other.get_last_lr() == schedule.get_last_lr()

    quietly(run)


def test_a_rate_in_a_tensor_is_filled_in_place() -> None:
    rate = torch.tensor(1.0)
    optimizer = sgd(rate)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5
    schedule.get_last_lr()[0].fill_(9.0)
    assert rate.item() == 0.5


def test_one_cycle_moves_the_first_beta_of_adam() -> None:
    optimizer = torch.optim.Adam([torch.ones(1, requires_grad=True)])
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    betas = [optimizer.param_groups[0]["betas"]]
    for _ in range(9):
        optimizer.step()
        schedule.step()
        betas.append(optimizer.param_groups[0]["betas"])
    assert betas[0] == (0.95, 0.999)
    assert min(beta for beta, _ in betas) == pytest.approx(0.85)
    schedule.step()
    with pytest.raises(ValueError, match=r"Tried to step 11 times\. The specified number of total"):
        schedule.step()


def test_the_order_of_calls_is_watched() -> None:
    optimizer = sgd()
    schedule = lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="`lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        schedule.step()
    optimizer = sgd()
    schedule = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler"):
        schedule.step()
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step\\(\\)`"):
        schedule.step(3)


def test_resuming_needs_the_initial_rates() -> None:
    with pytest.raises(
        KeyError, match="param 'initial_lr' is not specified in param_groups\\[0\\]"
    ):
        lr_scheduler.StepLR(sgd(), 1, last_epoch=4)
    optimizer = sgd(0.5)
    lr_scheduler.CosineAnnealingLR(optimizer, 10)
    resumed = lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=4)
    assert resumed.last_epoch == 5


class Halving:
    def __init__(self) -> None:
        self.base = 0.5

    def __call__(self, epoch: int) -> float:
        return self.base**epoch


def test_callable_objects_are_kept_in_a_checkpoint_and_functions_are_not() -> None:
    saved = lr_scheduler.LambdaLR(sgd(), Halving())
    saved.lr_lambdas[0].base = 0.25
    state = saved.state_dict()
    assert state["lr_lambdas"] == [{"base": 0.25}]
    other = lr_scheduler.LambdaLR(sgd(), Halving())
    other.load_state_dict(state)
    assert other.lr_lambdas[0].base == 0.25
    assert lr_scheduler.LambdaLR(sgd(), lambda _: 1.0).state_dict()["lr_lambdas"] == [None]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda s: s.StepLR("sgd", 3), TypeError, "str is not an Optimizer"),
        (lambda s: s.LambdaLR(sgd(), [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (
            lambda s: s.MultiplicativeLR(sgd(), 0.5),
            TypeError,
            "should be a function, but got float",
        ),
        (lambda s: s.ConstantLR(sgd(), 2.0), ValueError, "between 0 and 1"),
        (lambda s: s.LinearLR(sgd(), 0.0), ValueError, "Starting multiplicative factor"),
        (lambda s: s.LinearLR(sgd(), 0.5, 1.5), ValueError, "Ending multiplicative factor"),
        (lambda s: s.ReduceLROnPlateau(sgd(), factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda s: s.ReduceLROnPlateau(sgd(), "mid"), ValueError, "mode mid is unknown!"),
        (lambda s: s.ReduceLROnPlateau(sgd(), min_lr=[0, 0]), ValueError, "expected 1 min_lrs"),
        (lambda s: s.CyclicLR(sgd(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
        (lambda s: s.CyclicLR(sgd(), [0.1, 0.1], 0.2), ValueError, "base_lr has 2 values"),
        (lambda s: s.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "positive integer T_0"),
        (lambda s: s.OneCycleLR(sgd(), 0.1), ValueError, "You must define either total_steps"),
        (lambda s: s.OneCycleLR(sgd(), 0.1, total_steps=-3), ValueError, "but got -3"),
        (
            lambda s: s.OneCycleLR(sgd(), 0.1, 9, pct_start=2.0),
            ValueError,
            "pct_start, but got 2.0",
        ),
        (lambda s: s.ChainedScheduler([]), ValueError, "expects at least one scheduler"),
        (lambda s: s.SequentialLR(sgd(), [], []), ValueError, "expects at least one scheduler"),
    ],
)
def test_options_that_cannot_work_are_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        make(lr_scheduler)
    assert text in str(caught.value)


def test_parts_of_a_composite_share_one_optimizer_and_take_no_metric() -> None:
    optimizer = sgd()
    part = lr_scheduler.StepLR(optimizer, 2)
    stranger = lr_scheduler.StepLR(sgd(), 2)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    for wrong, text in ((stranger, "belong to the same optimizer"), (plateau, "does not support")):
        with pytest.raises(ValueError, match=text):
            lr_scheduler.SequentialLR(optimizer, [part, wrong], [3])
        with pytest.raises(ValueError, match=text):
            lr_scheduler.ChainedScheduler([part, wrong])
    with pytest.raises(ValueError, match="number of schedulers 1"):
        lr_scheduler.SequentialLR(optimizer, [part], [3])


def test_a_checkpoint_with_the_function_of_a_one_cycle_schedule_can_be_loaded() -> None:
    twins = [lr_scheduler.OneCycleLR(sgd(momentum=0.9), 2.0, total_steps=10) for _ in range(2)]
    state = twins[0].state_dict()
    del state["_anneal_func_type"], twins[1]._anneal_func_type
    twins[1].load_state_dict({**state, "anneal_func": lr_scheduler.OneCycleLR._annealing_cos})
    for _ in range(9):
        for schedule in twins:
            schedule.optimizer.step()
            schedule.step()
        assert twins[0].get_last_lr() == twins[1].get_last_lr()


def test_warnings_about_the_order_of_calls_say_where_to_read_on() -> None:
    schedule = lr_scheduler.ExponentialLR(sgd(), 0.9)
    with pytest.warns(UserWarning, match="how-to-adjust-learning-rate"):
        schedule.step()
    with pytest.warns(UserWarning, match=re.escape(lr_scheduler.EPOCH_DEPRECATION_WARNING)):
        schedule.step(3)
