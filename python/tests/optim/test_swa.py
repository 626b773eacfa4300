"""Averages of weights: their values, their schedule, statistics of batch normalisation."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import pytest

import pullback as torch
from pullback.optim import swa_utils


def linear(value: float, dtype: Any = torch.float64) -> Any:
    model = torch.nn.Linear(2, 1, bias=False, dtype=dtype)
    with torch.no_grad():
        model.weight.fill_(value)
    return model


def weight(average: Any) -> list[float]:
    return average.module.weight.detach().reshape(-1).tolist()


VALUES = [1.0, 2.0, 6.0, -1.0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"avg_fn": swa_utils.get_swa_avg_fn()},
        {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
    ],
)
def test_equal_averages_are_means(options: dict[str, Any]) -> None:
    average = swa_utils.AveragedModel(linear(0.0), **options)
    for count, value in enumerate(VALUES, 1):
        average.update_parameters(linear(value))
        assert weight(average) == pytest.approx([sum(VALUES[:count]) / count] * 2, rel=1e-6)
        assert average.n_averaged.item() == count
    assert average.n_averaged.dtype == torch.int64
    assert average(torch.ones(1, 2, dtype=torch.float64)).item() == pytest.approx(4.0)


@pytest.mark.parametrize(
    "options",
    [
        {"avg_fn": swa_utils.get_ema_avg_fn(0.75)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)},
    ],
)
def test_exponential_averages_decay(options: dict[str, Any]) -> None:
    average = swa_utils.AveragedModel(linear(0.0), **options)
    expected = VALUES[0]
    for value in VALUES:
        average.update_parameters(linear(value))
        expected = 0.75 * expected + 0.25 * value
        assert weight(average) == pytest.approx([expected] * 2)


def test_whole_numbers_are_averaged_too() -> None:
    for function, expected in (
        (swa_utils.get_ema_multi_avg_fn(0.5), 6),
        (swa_utils.get_swa_multi_avg_fn(), 5),
    ):
        averages, values = [torch.tensor([4, 4])], [torch.tensor([8, 8])]
        function(averages, values, torch.tensor(3))
        assert averages[0].tolist() == [expected] * 2
    by_number = [torch.tensor([4.0])]
    swa_utils.get_swa_multi_avg_fn()(by_number, [torch.tensor([8.0])], 3)
    assert by_number[0].item() == 5.0


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_a_decay_outside_its_range_is_refused(decay: float) -> None:
    for function in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=f"Invalid decay value {decay} provided"):
            function(decay)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(
            linear(0.0),
            avg_fn=swa_utils.get_swa_avg_fn(),
            multi_avg_fn=swa_utils.get_swa_multi_avg_fn(),
        )


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers_are_copied_or_averaged(use_buffers: bool) -> None:
    model = torch.nn.BatchNorm1d(2)
    average = swa_utils.AveragedModel(model, use_buffers=use_buffers)
    for value in (2.0, 4.0):
        model.running_mean.fill_(value)
        average.update_parameters(model)
    assert average.module.running_mean.tolist() == [3.0 if use_buffers else 4.0] * 2


def test_averages_of_several_dtypes_and_no_shared_memory() -> None:
    model = torch.nn.Sequential(linear(1.0), linear(2.0, torch.float32))
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    for value in (3.0, 5.0):
        with torch.no_grad():
            for part in model:
                part.weight.fill_(value)
        average.update_parameters(model)
    for mean, part in zip(average.module, model, strict=True):
        assert mean.weight.tolist() == [[4.0, 4.0]]
        assert mean.weight.dtype == part.weight.dtype
        assert mean.weight.requires_grad


def test_an_averaged_model_can_be_saved_and_goes_on() -> None:
    average = swa_utils.AveragedModel(linear(0.0), multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    average.update_parameters(linear(2.0))
    assert list(average.state_dict()) == ["n_averaged", "module.weight"]
    other = swa_utils.AveragedModel(linear(0.0))
    other.load_state_dict(average.state_dict())
    other.update_parameters(linear(4.0))
    assert weight(other) == [3.0, 3.0]
    plain = pickle.loads(pickle.dumps(swa_utils.AveragedModel(linear(1.0))))
    plain.update_parameters(linear(5.0))
    assert weight(plain) == [5.0, 5.0]


@pytest.mark.parametrize("kind", ["tensors", "pairs"])
def test_statistics_of_batch_normalisation_are_means_over_the_batches(kind: str) -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(1, momentum=0.3), torch.nn.Dropout())
    model.eval()
    batches = [torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [9.0]])]
    loader: Any = batches if kind == "tensors" else [(batch, 0) for batch in batches]
    model[0].running_mean.fill_(100.0)
    swa_utils.update_bn(loader, model, device="cpu")
    assert model[0].running_mean.item() == pytest.approx((2.0 + 7.0) / 2)
    assert model[0].running_var.item() == pytest.approx((2.0 + 8.0) / 2)
    assert model[0].momentum == 0.3
    assert not model.training
    called: list[Any] = []
    plain = linear(1.0)
    plain.register_forward_pre_hook(lambda *_: called.append(1))
    swa_utils.update_bn(batches, plain)
    assert not called


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_the_rate_is_annealed_to_its_end(strategy: str) -> None:
    first, second = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": [first], "lr": 0.5}, {"params": [second], "lr": 2.0}])
    schedule = swa_utils.SWALR(optimizer, [0.1, 1.0], anneal_epochs=4, anneal_strategy=strategy)
    for step in range(1, 7):
        optimizer.step()
        schedule.step()
        t = min(step / 4, 1)
        share = t if strategy == "linear" else (1 - math.cos(math.pi * t)) / 2
        expected = [0.5 + share * (0.1 - 0.5), 2.0 + share * (1.0 - 2.0)]
        assert schedule.get_last_lr() == pytest.approx(expected)
    assert optimizer.param_groups[0]["swa_lr"] == 0.1
    state = pickle.loads(pickle.dumps(schedule.state_dict()))
    assert "anneal_func" not in state
    other = swa_utils.SWALR(optimizer, 0.3)
    other.load_state_dict(state)
    assert other.anneal_epochs == 4
    assert other.anneal_func(0.25) == schedule.anneal_func(0.25)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        schedule.get_lr()


def test_no_annealing_jumps_to_the_end() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    schedule = swa_utils.SWALR(optimizer, 0.1, anneal_epochs=0)
    assert schedule.get_last_lr() == [0.1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step()
    assert schedule.get_last_lr() == [0.1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"swa_lr": 0.1, "anneal_strategy": "sine"}, "anneal_strategy must be one of 'cos' or"),
        ({"swa_lr": 0.1, "anneal_epochs": -1}, "anneal_epochs must be equal or greater than 0"),
        ({"swa_lr": 0.1, "anneal_epochs": 1.5}, "anneal_epochs must be equal or greater than 0"),
        ({"swa_lr": [0.1, 0.2]}, "swa_lr must have the same length as optimizer.param_groups"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(options: dict[str, Any], text: str) -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    with pytest.raises(ValueError, match=text):
        swa_utils.SWALR(optimizer, **options)
