"""``functional_call`` and ``stack_module_state``: modules with other tensors in their places."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.func import functional_call, grad, stack_module_state, vmap


class Tied(nn.Module):
    """``x A' + k x A' + c``: one weight under two names, and two buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("shift", torch.zeros(1))
        self.register_buffer("spare", torch.zeros(1), persistent=False)

    def forward(self, x: Any, k: float = 1.0) -> Any:
        return self.a(x) + self.b(x) * k + self.shift


ONES, ZEROS, ROW = torch.ones(2, 2), torch.zeros(2, 2), torch.ones(1, 2)


def test_other_tensors_take_the_places_of_a_module_s_own() -> None:
    module = Tied()
    before = dict(module.named_parameters())
    assert functional_call(module, {"a.weight": ONES}, (ROW,)).tolist() == [[4.0, 4.0]]
    # What is no tuple is the only argument.
    assert functional_call(module, {"a.weight": ONES}, ROW, {"k": 0.0}).tolist() == [[2.0, 2.0]]
    found = functional_call(module, {"a.weight": ONES}, None, {"x": ROW, "k": 0.0})
    assert found.tolist() == [[2.0, 2.0]]
    several = ({"a.weight": ONES}, {"shift": torch.ones(1)})
    assert functional_call(module, several, ROW).tolist() == [[5.0, 5.0]]
    assert functional_call(module, (), ROW).equal(module(ROW))
    after = dict(module.named_parameters())
    assert all(before[name] is after[name] for name in before)
    assert module.shift.tolist() == [0.0]


def test_tied_tensors_are_replaced_together() -> None:
    module = Tied()
    both = {"a.weight": ONES, "b.weight": ONES}
    assert functional_call(module, both, ROW).tolist() == [[4.0, 4.0]]
    different = {"a.weight": ONES, "b.weight": ZEROS}
    with pytest.raises(
        ValueError, match=r"multiple values for keys \['a.weight', 'b.weight'\], wh"
    ):
        functional_call(module, different, ROW)
    found = functional_call(module, different, ROW, tie_weights=False)
    assert found.tolist() == [[2.0, 2.0]]


def test_strict_wants_all_names_and_no_others() -> None:
    module = Tied()
    buffers = {"shift": torch.ones(1), "spare": torch.ones(1)}
    found = functional_call(module, {"a.weight": ONES, **buffers}, ROW, strict=True)
    assert found.tolist() == [[5.0, 5.0]]
    for given, message in (
        ({"a.weight": ONES}, r"reparametrizing for Tied:\n\tMissing key\(s\): 'shift', 'spare'\."),
        ({"a.weight": ONES, **buffers, "z": ONES}, r"Unexpected key\(s\): 'z'\.$"),
    ):
        with pytest.raises(RuntimeError, match=message):
            functional_call(module, given, ROW, strict=True)


def test_wrong_tensors_and_names_are_refused() -> None:
    module = Tied()
    for given, error, message in (
        ({"a.weight": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"a": ONES}, TypeError, "attribute `a`: .* is not an instance of torch.Tensor"),
        ({"y.z": ONES}, AttributeError, "Tied has no attribute `y`"),
        ({"": ONES}, KeyError, "tensor name can.*t be empty"),
        (
            ({"a.weight": ONES},) * 2,
            ValueError,
            r"\['a.weight'\] appeared in multiple dictionaries",
        ),
        (3, ValueError, "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple"),
        ((3,), ValueError, "Expected all elements of parameter_and_buffer_dicts to be dictiona"),
    ):
        weight = module.a.weight
        with pytest.raises(error, match=message):
            functional_call(module, given, ROW)  # type: ignore[arg-type]
        assert module.a.weight is weight
        assert module.b.weight is weight


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, fails: bool = False) -> Any:
        self.count = self.count + 1
        if fails:
            raise ZeroDivisionError
        return self.weight * self.count


def test_what_the_module_assigns_is_in_the_dictionary_afterwards() -> None:
    module = Counter()
    given = {"count": torch.tensor([5.0])}
    assert functional_call(module, given).tolist() == [6.0]
    assert given["count"].tolist() == [6.0]
    assert module.count.tolist() == [0.0]
    with pytest.raises(ZeroDivisionError):
        functional_call(module, {"weight": torch.zeros(1), "count": torch.ones(1)}, True)
    assert type(module.weight) is nn.Parameter
    assert (module.weight.tolist(), module.count.tolist()) == ([1.0], [0.0])
    assert list(module.state_dict()) == ["count", "weight"] or set(module.state_dict()) == {
        "count",
        "weight",
    }
    # A name that there is not is there for the time of the call.
    functional_call(module, {"other": torch.zeros(1)})
    assert not hasattr(module, "other")


def test_gradients_by_the_parameters_of_a_module() -> None:
    layer = nn.Linear(2, 1)
    x = torch.tensor([1.0, 2.0])
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    found = grad(lambda p: functional_call(layer, p, x).sum())(parameters)
    assert found["weight"].tolist() == [[1.0, 2.0]]
    assert found["bias"].tolist() == [1.0]
    assert layer.weight.grad is None


def test_the_old_place_warns() -> None:
    with pytest.warns(FutureWarning, match=r"Please use `torch\.func\.functional_call`"):
        found = nn.utils.stateless.functional_call(Tied(), {"a.weight": ONES}, ROW)
    assert found.tolist() == [[4.0, 4.0]]


# Ensembles.


def test_an_ensemble_runs_as_one() -> None:
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(5)]
    parameters, buffers = stack_module_state(models)
    assert buffers == {}
    assert parameters["0.weight"].shape == (5, 4, 3)
    assert parameters["0.weight"].is_leaf
    assert parameters["0.weight"].requires_grad
    base = models[0]
    x = torch.randn(6, 3)
    found = vmap(lambda p: functional_call(base, p, x))(parameters)
    assert torch.allclose(found, torch.stack([model(x) for model in models]), atol=1e-6)
    found.sum().backward()
    for model in models:
        model(x).sum().backward()
    expected = torch.stack([model[0].weight.grad for model in models])
    assert torch.allclose(parameters["0.weight"].grad, expected, atol=1e-5)


def test_stacked_state_requires_grad_where_all_do() -> None:
    frozen, free = nn.Linear(1, 1), nn.Linear(1, 1)
    frozen.weight.requires_grad_(False)
    assert not stack_module_state([frozen, frozen])[0]["weight"].requires_grad
    with pytest.raises(
        RuntimeError, match=r"Expected weight from each model to have the same .req"
    ):
        stack_module_state([frozen, free])
    parameters, buffers = stack_module_state(nn.ModuleList([nn.BatchNorm1d(2), nn.BatchNorm1d(2)]))
    assert buffers["num_batches_tracked"].tolist() == [0, 0]
    assert set(parameters) == {"weight", "bias"}


def test_modules_that_do_not_fit_together_are_refused() -> None:
    layer = nn.Linear(1, 1)
    for models, message in (
        ([], "stack_module_state: Expected at least one model, got 0"),
        ([layer, nn.Linear(1, 1).eval()], "all models to have the same training/eval mode"),
        ([layer, nn.ReLU()], "all models to be of the same class"),
    ):
        with pytest.raises(RuntimeError, match=message):
            stack_module_state(models)


def test_batch_normalisation_without_statistics_can_be_batched() -> None:
    from pullback.func import replace_all_batch_norm_modules_

    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))
    assert replace_all_batch_norm_modules_(model) is model
    assert dict(model.named_buffers()) == {}
    x = torch.randn(5, 4, 2)
    found = vmap(model)(x)
    assert torch.allclose(found, torch.stack([model(part) for part in x]), atol=1e-6)


def test_what_the_function_takes_away_is_there_again() -> None:
    class Careless(nn.Linear):
        def forward(self, x: Any) -> Any:
            weight = self.weight
            del self.weight
            self.bias = None
            return x @ weight

    module = Careless(2, 2)
    own = dict(module.named_parameters())
    found = functional_call(module, {"weight": ONES, "bias": ZEROS[0]}, (ROW,))
    assert found.tolist() == [[2.0, 2.0]]
    after = dict(module.named_parameters())
    assert after.keys() == own.keys()
    assert all(after[name] is own[name] for name in own)


def test_modules_that_contain_themselves() -> None:
    outer = torch.nn.Module()
    outer.inner = torch.nn.Linear(1, 1)
    outer.inner.outer = outer
    outer.forward = lambda x: outer.inner(x)
    x = torch.ones(1, 1)
    before = outer.inner.weight
    values = {"inner.weight": torch.full((1, 1), 2.0), "inner.bias": torch.zeros(1)}
    assert torch.func.functional_call(outer, values, x).item() == 2.0
    deep = {"inner.outer.inner.weight": torch.full((1, 1), 3.0), "inner.bias": torch.zeros(1)}
    assert torch.func.functional_call(outer, deep, x).item() == 3.0
    assert outer.inner.weight is before
