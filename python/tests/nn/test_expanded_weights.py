"""Gradients of each sample by ``call_for_per_sample_grads``, beside those of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.nn.utils._expanded_weights import ExpandedWeight
from pullback.nn.utils._expanded_weights.expanded_weights_utils import (
    forward_helper,
    set_grad_sample_if_exists,
    standard_kwargs,
    sum_over_all_but_batch_and_last_n,
    unpack_expanded_weight_or_tensor,
)
from pullback.nn.utils._per_sample_grad import call_for_per_sample_grads

F = nn.functional


def _by_loop(
    module: Any, source: Any, dim: int = 0, pick: Callable[[Any], Any] = lambda x: x
) -> Any:
    found = []
    for at in range(source.size(dim)):
        loss = pick(module(source.narrow(dim, at, 1))).pow(2).sum()
        found.append(torch.autograd.grad(loss, list(module.parameters())))
    return [torch.stack(grads) for grads in zip(*found, strict=True)]


def _check(
    module: Any, source: Any, dim: int = 0, pick: Callable[[Any], Any] = lambda x: x
) -> None:
    expected = _by_loop(module, source, dim, pick)
    plain = source.detach().clone()
    if source.is_floating_point():
        source.requires_grad_()
        plain.requires_grad_()
    output = pick(call_for_per_sample_grads(module, batch_size=source.size(dim))(source))
    by_module = pick(module(plain))
    torch.testing.assert_close(output, by_module)
    output.pow(2).sum().backward()
    for param, grads in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(param.grad_sample, grads)
        assert param.grad is None
    if source.is_floating_point():
        (by_input,) = torch.autograd.grad(by_module.pow(2).sum(), plain)
        torch.testing.assert_close(source.grad, by_input)


MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(3, 4), (5, 3)),
    "linear of sequences": (lambda: nn.Linear(3, 4, bias=False), (5, 2, 6, 3)),
    "conv1d": (lambda: nn.Conv1d(2, 4, 3, padding=1), (3, 2, 7)),
    "conv2d with groups": (
        lambda: nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=(1, 2), groups=2),
        (3, 4, 8, 9),
    ),
    "conv2d that keeps the size": (lambda: nn.Conv2d(2, 3, (4, 3), padding="same"), (3, 2, 6, 5)),
    "conv1d without padding": (lambda: nn.Conv1d(2, 3, 2, padding="valid"), (3, 2, 6)),
    "conv2d in a circle": (
        lambda: nn.Conv2d(2, 3, 3, padding=2, padding_mode="circular"),
        (2, 2, 5, 5),
    ),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2, bias=False), (2, 2, 3, 4, 3)),
    "layer_norm": (lambda: nn.LayerNorm([3, 4]), (5, 2, 3, 4)),
    "rms_norm": (lambda: nn.RMSNorm(4), (5, 2, 4)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (5, 4, 3)),
    "group_norm of channels": (lambda: nn.GroupNorm(2, 4), (5, 4)),
    "instance_norm": (lambda: nn.InstanceNorm2d(3, affine=True), (4, 3, 5, 2)),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_the_gradients_of_each_sample_that_a_loop_finds(name: str) -> None:
    make, size = MODULES[name]
    torch.manual_seed(0)
    module = make().double()
    for param in module.parameters():
        nn.init.normal_(param)
    _check(module, torch.randn(size, dtype=torch.float64))


@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 1}, {"padding_idx": -1}, {"scale_grad_by_freq": True}]
)
def test_rows_of_an_embedding_get_what_their_sample_gives_them(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = nn.Embedding(4, 3, dtype=torch.float64, **options)
    _check(module, torch.tensor([[0, 1, 1], [3, 3, 3], [2, 0, 1]]))


def test_running_statistics_are_updated_once() -> None:
    torch.manual_seed(0)
    kwargs: Any = {"affine": True, "track_running_stats": True, "dtype": torch.float64}
    module, twin = nn.InstanceNorm1d(2, **kwargs), nn.InstanceNorm1d(2, **kwargs)
    source = torch.randn(3, 2, 4, dtype=torch.float64)
    call_for_per_sample_grads(module)(source).sum().backward()
    twin(source)
    torch.testing.assert_close(module.running_mean, twin.running_mean)
    torch.testing.assert_close(module.running_var, twin.running_var)
    for param in module.parameters():
        param.grad_sample = None
    _check(module.eval(), source)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bias": False},
        {"bidirectional": True, "batch_first": True},
        {"num_layers": 2, "bidirectional": True},
    ],
)
def test_recurrent_layers_have_them_too(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = kind(3, 4, dtype=torch.float64, **options)
    dim = 0 if options.get("batch_first") else 1
    size = (2, 5, 3) if dim == 0 else (5, 2, 3)
    _check(module, torch.randn(size, dtype=torch.float64), dim, lambda result: result[0])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (nn.RNN, {"nonlinearity": "relu"}),
        (nn.LSTM, {"proj_size": 2, "bidirectional": True}),
        (nn.GRU, {"num_layers": 2}),
    ],
)
def test_packed_sequences_have_them_in_their_own_order(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    module = kind(3, 4, dtype=torch.float64, **options)
    sequences = [torch.randn(count, 3, dtype=torch.float64) for count in (2, 5, 3)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    output, state = call_for_per_sample_grads(module, batch_size=3)(packed)
    by_module, expected_state = module(packed)
    torch.testing.assert_close(output.data, by_module.data)
    torch.testing.assert_close(state, expected_state)
    output.data.pow(2).sum().backward()
    for row, at in enumerate(packed.sorted_indices.tolist()):
        loss = module(sequences[at].unsqueeze(1))[0].pow(2).sum()
        for param, grad in zip(
            module.parameters(), torch.autograd.grad(loss, list(module.parameters())), strict=True
        ):
            torch.testing.assert_close(param.grad_sample[row], grad)


def test_a_module_that_is_called_twice_adds_up() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 3, dtype=torch.float64)
    _check(nn.Sequential(layer, nn.Tanh(), layer), torch.randn(4, 3, dtype=torch.float64))


def test_a_mean_over_the_samples_is_undone() -> None:
    torch.manual_seed(0)
    module, source = nn.Linear(3, 2), torch.randn(4, 3)
    call_for_per_sample_grads(module, loss_reduction="mean")(source).sum(1).mean().backward()
    by_mean = module.weight.grad_sample
    module.weight.grad_sample = module.bias.grad_sample = None
    call_for_per_sample_grads(module)(source).sum().backward()
    torch.testing.assert_close(by_mean, module.weight.grad_sample)


def test_parameters_that_require_no_gradient_get_none() -> None:
    module = nn.Linear(3, 2)
    module.bias.requires_grad_(False)
    call_for_per_sample_grads(module)(torch.ones(4, 3)).sum().backward()
    assert module.weight.grad_sample.shape == (4, 2, 3)
    assert not hasattr(module.bias, "grad_sample")


def test_the_gradient_of_these_gradients_is_refused() -> None:
    module = nn.Linear(3, 2)
    source = torch.ones(4, 3, requires_grad=True)
    output = call_for_per_sample_grads(module)(source).pow(2).sum()
    (grad,) = torch.autograd.grad(output, source, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_functions_without_a_rule_are_refused_by_name() -> None:
    weight = ExpandedWeight(torch.ones(3, requires_grad=True), 2, "sum")
    with pytest.raises(RuntimeError, match="cannot handle function mul"):
        torch.ones(2, 3) * weight
    with pytest.raises(RuntimeError, match="cannot handle function batch_norm"):
        call_for_per_sample_grads(nn.BatchNorm1d(3))(torch.ones(2, 3))


def test_an_expanded_weight_answers_for_its_parameter() -> None:
    param = torch.ones(3, 2, requires_grad=True)
    weight = ExpandedWeight(param, 2, "sum")
    assert (weight.shape, weight.dtype, weight.dim()) == ((3, 2), torch.float32, 2)
    assert weight.size(1) == 2
    assert weight.requires_grad
    assert weight.data_ptr() == param.data_ptr()
    with pytest.raises(RuntimeError, match="cannot handle function"):
        weight.T  # noqa: B018


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda w: F.linear(torch.ones(3), w), "does not have a batch dimension"),
        (lambda w: F.linear(torch.ones(5, 3), w), "batch size matching input but got .* of 5"),
        (lambda w: F.linear(torch.ones(0, 3), w), "0 is not a valid batch size"),
        (lambda w: F.linear(w, torch.ones(2, 3)), "inputs that are also ExpandedWeights"),
        (lambda w: F.embedding(torch.tensor([0, 1]), w), "needs an input with a batch size"),
        (lambda w: F.layer_norm(torch.ones(2, 3), (2, 3), w), "should not normalize over batch"),
        (lambda w: F.linear(torch.ones(2, 3), w, torch.ones(2, requires_grad=True)), "a mixture"),
    ],
)
def test_calls_that_do_not_tell_the_samples_apart_are_refused(call: Any, phrase: str) -> None:
    weight = ExpandedWeight(torch.ones(2, 3, requires_grad=True), 2, "sum")
    with pytest.raises(RuntimeError, match=phrase):
        call(weight)


@pytest.mark.parametrize(
    ("kwargs", "phrase"),
    [
        ({"loss_reduction": "max"}, "to be sum or mean, got max"),
        ({"batch_size": 2.5}, "must be None or an integer, got float"),
        ({"batch_size": -1}, "must be positive, got -1"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(kwargs: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        call_for_per_sample_grads(nn.Linear(3, 2), **kwargs)


def test_sizes_of_the_batch_must_agree_and_grad_sample_be_cleared() -> None:
    module = nn.Bilinear(3, 3, 2)
    with pytest.raises(RuntimeError, match="one input with batch size 4 and one with batch size 5"):
        call_for_per_sample_grads(module)(torch.ones(4, 3), torch.ones(5, 3))
    with pytest.raises(RuntimeError, match="cannot compute the batch size from the inputs"):
        call_for_per_sample_grads(module)("none")
    with pytest.raises(RuntimeError, match=r"must be nn\.Module, got str"):
        call_for_per_sample_grads("none")
    layer = nn.Linear(3, 2)
    call_for_per_sample_grads(layer)(torch.ones(4, 3)).sum().backward()
    with pytest.raises(RuntimeError, match=r"incorrect for multiple calls.* parameter weight"):
        call_for_per_sample_grads(layer)


def test_only_tensors_that_require_gradients_become_expanded_weights() -> None:
    with pytest.raises(RuntimeError, match="Can only build"):
        ExpandedWeight(torch.ones(3), 2, "sum")
    with pytest.raises(RuntimeError, match="Can only make Expanded Weights of Tensors, got int"):
        ExpandedWeight(3, 2, "sum")


def test_the_parts_of_a_rule_do_what_they_say() -> None:
    param = torch.ones(2, 3, requires_grad=True)
    weight = ExpandedWeight(param, 4, "mean")
    args, kwargs = standard_kwargs(("bias",), (torch.ones(4, 3), weight, None))
    assert forward_helper(F.linear, args, kwargs).tolist() == [[3.0, 3.0]] * 4
    assert args[1] is weight
    for _ in range(2):
        set_grad_sample_if_exists(weight, lambda found: torch.ones(4, *found.shape))
    assert param.grad_sample.tolist() == torch.full((4, 2, 3), 8.0).tolist()
    plain = torch.ones(2)
    set_grad_sample_if_exists(plain, lambda found: found)
    assert not hasattr(plain, "grad_sample")
    assert unpack_expanded_weight_or_tensor(weight) is param
    assert unpack_expanded_weight_or_tensor(3) is None
    with pytest.raises(RuntimeError, match="a mixture"):
        unpack_expanded_weight_or_tensor(param)
    assert sum_over_all_but_batch_and_last_n(torch.ones(2, 3, 4, 5), 1).shape == (2, 5)
    assert sum_over_all_but_batch_and_last_n(torch.ones(2, 5), 1).shape == (2, 5)
