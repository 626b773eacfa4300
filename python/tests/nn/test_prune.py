"""Pruning: which elements go, what is kept of them, and how it is taken back."""

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.nn.utils import prune


def layer(rows=3, columns=4):
    made = nn.Linear(columns, rows)
    with pullback.no_grad():
        values = pullback.arange(1.0, rows * columns + 1).reshape(rows, columns)
        made.weight.copy_(values * (-1) ** values)
    return made


def test_a_pruned_parameter_is_an_original_and_a_mask():
    module = prune.l1_unstructured(layer(), "weight", 5)
    assert list(module.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert module.weight_mask.reshape(-1).tolist() == [0.0] * 5 + [1.0] * 7
    assert pullback.equal(module.weight, module.weight_orig * module.weight_mask)
    assert prune.is_pruned(module)
    module(pullback.ones(1, 4)).sum().backward()
    assert module.weight_orig.grad.reshape(-1).tolist() == [0.0] * 5 + [1.0] * 7


def test_the_hook_follows_the_original():
    module = prune.l1_unstructured(layer(), "weight", 1)
    with pullback.no_grad():
        module.weight_orig.fill_(2.0)
    module(pullback.ones(1, 4))
    assert module.weight.reshape(-1).tolist() == [0.0] + [2.0] * 11


def test_removal_keeps_the_zeros():
    module = prune.l1_unstructured(layer(), "weight", 0.5)
    original = module.weight_orig
    prune.remove(module, "weight")
    assert list(module.state_dict()) == ["bias", "weight"]
    assert module.weight is original
    assert (module.weight == 0).sum().item() == 6
    assert not prune.is_pruned(module)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(module, "weight")


@pytest.mark.parametrize(("amount", "zeros"), [(0, 0), (0.0, 0), (1, 1), (0.25, 3), (12, 12)])
@pytest.mark.parametrize("method", [prune.l1_unstructured, prune.random_unstructured])
def test_amounts_are_numbers_or_parts(amount, zeros, method):
    module = method(layer(), "weight", amount)
    assert (module.weight_mask == 0).sum().item() == zeros


@pytest.mark.parametrize(("n", "expected"), [(1, 0), (2, 0), (float("inf"), 0), (-float("inf"), 0)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_of_the_least_norm_go(n, expected, dim):
    module = prune.ln_structured(layer(), "weight", 1, n, dim)
    weight = layer().weight.detach().numpy()
    norms = np.linalg.norm(np.moveaxis(weight, dim, 0), ord=n, axis=1)
    mask = np.moveaxis(module.weight_mask.numpy(), dim, 0)
    assert int(norms.argmin()) == expected
    assert mask.sum(1).tolist() == [0.0] + [mask.shape[1]] * (len(mask) - 1)


def test_random_slices():
    module = prune.random_structured(layer(), "weight", 2, 1)
    assert sorted(module.weight_mask.sum(0).tolist()) == [0.0, 0.0, 3.0, 3.0]


def test_a_second_method_sees_what_the_first_left():
    module = prune.ln_structured(layer(), "weight", 1, 2, 0)
    prune.l1_unstructured(module, "weight", 0.5)
    (method,) = module._forward_pre_hooks.values()
    assert isinstance(method, prune.PruningContainer)
    assert len(method) == 2
    assert isinstance(method[0], prune.LnStructured)
    # The first row, then half of the eight elements that are left.
    assert module.weight_mask.reshape(-1).tolist() == [0.0] * 8 + [1.0] * 4
    prune.ln_structured(module, "weight", 1, 2, 0)
    assert module.weight_mask.sum().item() == 0.0


def test_importance_scores_choose_in_place_of_the_parameter():
    scores = pullback.arange(12.0, 0, -1).reshape(3, 4)
    module = prune.l1_unstructured(layer(), "weight", 2, importance_scores=scores)
    assert module.weight_mask.reshape(-1).tolist() == [1.0] * 10 + [0.0] * 2
    with pytest.raises(AssertionError, match="importance_scores should have the same shape"):
        prune.l1_unstructured(layer(), "weight", 2, importance_scores=pullback.ones(3))


def test_global_pruning_compares_all_parameters():
    model = nn.Sequential(layer(2, 2), layer(3, 4))
    pairs = [(model[0], "weight"), (model[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=5)
    assert model[0].weight_mask.sum().item() + model[1].weight_mask.sum().item() == 11
    # 1, 2, 3 (or 4) of both layers are the least.
    assert model[0].weight_mask.reshape(-1).tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(TypeError, match="parameters is not an Iterable"):
        prune.global_unstructured(3, prune.L1Unstructured, amount=5)
    with pytest.raises(TypeError, match='Only "unstructured" PRUNING_TYPE supported'):
        prune.global_unstructured(pairs, prune.RandomStructured, amount=1)


def test_masks_and_identity():
    mask = pullback.tensor([[1.0, 0.0], [0.0, 1.0]])
    module = prune.custom_from_mask(nn.Linear(2, 2), "weight", mask)
    assert pullback.equal(module.weight_mask, mask)
    assert prune.identity(nn.Linear(2, 2), "bias").bias_mask.tolist() == [1.0, 1.0]


def test_prune_registers_nothing():
    method = prune.L1Unstructured(1)
    assert method.prune(pullback.tensor([1.0, -3.0, 2.0])).tolist() == [0.0, -3.0, 2.0]
    given = pullback.tensor([1.0, 0.0, 1.0])
    pruned = method.prune(pullback.tensor([1.0, -3.0, 2.0]), default_mask=given)
    assert pruned.tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("amount", "error", "text"),
    [
        (-1, ValueError, r"amount=-1 should either be a float in the range \[0, 1\] or"),
        (1.5, ValueError, "should either be a float"),
        ("x", TypeError, "Invalid type for amount: x"),
        (13, ValueError, "amount=13 should be smaller than the number of parameters"),
    ],
)
def test_amounts_that_are_refused_leave_the_module_as_it_was(amount, error, text):
    module = layer()
    before = list(module.state_dict())
    with pytest.raises(error, match=text):
        prune.l1_unstructured(module, "weight", amount)
    assert list(module.state_dict()) == before
    assert module(pullback.ones(1, 4)).shape == (1, 3)


def test_other_refusals():
    with pytest.raises(ValueError, match="Structured pruning can only be applied to multi"):
        prune.ln_structured(layer(), "bias", 1, 2, 0)
    with pytest.raises(IndexError, match="Invalid index 3 for tensor of size"):
        prune.ln_structured(layer(), "weight", 1, 2, 3)
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        prune.random_unstructured(layer(), "none", 1)
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()
    one = prune.L1Unstructured(1)
    one._tensor_name = "weight"
    other = prune.L1Unstructured(1)
    other._tensor_name = "bias"
    container = prune.PruningContainer(one)
    with pytest.raises(ValueError, match="acting on the parameter named 'weight'"):
        container.add_pruning_method(other)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        container.add_pruning_method(3)
