"""What a tensor keeps for autograd: flags, ``.grad``, ``.data`` and ``detach``, versions."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import increment_version


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values or (1, 2)], requires_grad=True)


def test_a_fresh_leaf_and_a_result_have_the_defaults() -> None:
    x = leaf()
    y = x * 2
    assert (x.requires_grad, x.is_leaf, x.grad_fn, x.grad, x.output_nr) == (
        True,
        True,
        None,
        None,
        0,
    )
    assert (y.requires_grad, y.is_leaf, y.retains_grad, y.output_nr) == (True, False, False, 0)
    for tensor in (x, y):
        assert tensor.name is None
        assert tensor._version == 0
        assert tensor._backward_hooks is None
        assert tensor._post_accumulate_grad_hooks is None


def test_output_nr_is_the_place_among_the_results_of_an_op() -> None:
    assert [part.output_nr for part in leaf(1, 2, 3).unbind()] == [0, 1, 2]


def test_a_view_made_without_recording_requires_grad_but_leads_nowhere() -> None:
    x = leaf()
    with torch.no_grad():
        view = x.view(2)
    assert (view.requires_grad, view.grad_fn, view.is_leaf) == (True, None, True)
    result = view * 2
    assert result.grad_fn.next_functions == ((None, 0), (None, 0))
    result.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    "name",
    [
        "grad_fn",
        "output_nr",
        "is_leaf",
        "_version",
        "retains_grad",
        "_base",
        "shape",
        "dtype",
        "name",
    ],
)
def test_what_autograd_knows_of_a_tensor_cannot_be_set(name: str) -> None:
    x = leaf()
    with pytest.raises(AttributeError):
        setattr(x, name, None)
    with pytest.raises(AttributeError):
        delattr(x, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("requires_grad", "requires_grad must be a bool"),
        ("data", "Deleting tensor data is not allowed"),
        ("_grad_fn", "Deletion of _grad_fn not allowed"),
        ("_backward_hooks", "Deletion of _backward_hooks not allowed"),
        ("_post_accumulate_grad_hooks", "Deletion of _post_accumulate_grad_hooks not allowed"),
    ],
)
def test_attributes_of_autograd_cannot_be_deleted(name: str, message: str) -> None:
    x = leaf()
    x.register_hook(lambda grad: None)
    with pytest.raises(RuntimeError, match=message):
        delattr(x, name)
    assert x.requires_grad
    assert len(x._backward_hooks) == 1


def test_volatile_says_no_and_warns_whatever_it_is_set_to() -> None:
    x = leaf()
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        x.volatile = True
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_the_flag_takes_nothing_but_bools(value: Any) -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = value
    with pytest.raises(TypeError, match="must be bool"):
        x.requires_grad_(value)
    assert not x.requires_grad


def test_the_flag_of_a_result_cannot_be_changed() -> None:
    y = leaf() * 2
    for value in (True, False):
        with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf"):
            y.requires_grad = value
    with pytest.raises(RuntimeError, match=r"var_no_grad = var\.detach\(\)"):
        y.requires_grad_(False)
    assert y.requires_grad_() is y


def test_integers_cannot_require_grad() -> None:
    x = torch.tensor([1])
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require"):
        x.requires_grad_()
    assert not x.requires_grad


def test_hooks_that_are_set_as_a_dictionary_run() -> None:
    x, seen = leaf(), []

    def double(grad: Any) -> Any:
        seen.append(grad.tolist())
        return grad * 2

    hooks = OrderedDict({0: double})
    x._backward_hooks = hooks
    assert x._backward_hooks is hooks
    (x * 3).sum().backward()
    assert seen == [[3, 3]]
    assert x.grad.tolist() == [6, 6]
    x.register_hook(lambda grad: seen.append("registered"))
    assert len(hooks) == 2
    (x * 3).sum().backward()
    assert seen[1:] == [[3, 3], "registered"]


def test_hooks_that_are_set_take_the_place_of_those_that_were_registered() -> None:
    x, seen = leaf(), []
    handle = x.register_hook(lambda grad: seen.append("old"))
    x._backward_hooks = OrderedDict({7: lambda grad: seen.append("new")})
    x.sum().backward()
    assert seen == ["new"]
    handle.remove()
    x._backward_hooks = None
    assert x._backward_hooks is None
    x.sum().backward()
    assert seen == ["new"]
    x.register_hook(lambda grad: seen.append("again"))
    x.sum().backward()
    assert seen == ["new", "again"]


def test_hooks_of_a_result_can_be_set_too() -> None:
    x, seen = leaf(), []
    y = x * 3
    y._backward_hooks = OrderedDict({0: lambda grad: grad * 2})
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.sum().backward()
    assert seen == [[2, 2]]
    assert x.grad.tolist() == [6, 6]


def test_hooks_may_be_set_before_a_tensor_requires_grad() -> None:
    x, seen = torch.ones(2), []
    x._backward_hooks = OrderedDict({0: lambda grad: seen.append(grad.tolist())})
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        x.register_hook(seen.append)
    x.requires_grad_()
    (x * 2).sum().backward()
    assert seen == [[2, 2]]


def test_hooks_after_accumulation_can_be_set_as_a_dictionary() -> None:
    x, seen = leaf(), []
    x._post_accumulate_grad_hooks = OrderedDict({0: lambda p: seen.append(p.grad.tolist())})
    (x * 3).sum().backward()
    assert seen == [[3, 3]]
    x._post_accumulate_grad_hooks = None
    (x * 3).sum().backward()
    assert seen == [[3, 3]]


@pytest.mark.parametrize("value", [1, [], "hooks"])
def test_hooks_are_a_dictionary_or_none(value: Any) -> None:
    x = leaf()
    with pytest.raises(TypeError, match="can only be a dict or None"):
        x._backward_hooks = value
    with pytest.raises(TypeError, match="can only be a dict or None"):
        x._post_accumulate_grad_hooks = value
    assert x._backward_hooks is None


def test_what_may_not_be_a_gradient_leaves_the_old_one() -> None:
    x = leaf()
    x.grad = old = torch.ones(2)
    cases: list[tuple[Any, type[Exception], str]] = [
        (1, TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
        (x, RuntimeError, "can't assign Variable as its own grad"),
        (torch.ones(2, dtype=torch.float64), RuntimeError, "assign a gradient with dtype"),
        # Of several faults the dtype is named first.
        (torch.ones(3, dtype=torch.float64), RuntimeError, "assign a gradient with dtype"),
        (torch.ones(3), RuntimeError, "assign a gradient of size"),
        (torch.ones(1, 2), RuntimeError, "assign a gradient of size"),
    ]
    for value, kind, message in cases:
        with pytest.raises(kind, match=message):
            x.grad = value
        assert x.grad is old
    del x.grad
    assert x.grad is None


def test_reading_the_gradient_of_a_result_warns_unless_it_is_retained() -> None:
    y = leaf() * 2
    with pytest.warns(UserWarning, match="attribute of a Tensor that is not a leaf Tensor"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_a_grad_fn_can_only_be_taken_away() -> None:
    y = leaf() * 2
    with pytest.raises((RuntimeError, TypeError)):
        y._grad_fn = 1
    y._grad_fn = None
    assert y.grad_fn is None
    assert not y.requires_grad


def test_data_has_a_version_of_its_own_and_detach_the_same() -> None:
    x = leaf()
    y = x * 2
    y.detach().add_(1)
    assert y._version == 1
    y.data.add_(1)
    assert y._version == 1
    assert y.data._version == 0
    assert y.tolist() == [4, 6]
    assert y.detach()._base is None


def test_a_detached_alias_may_get_another_size_without_effect_on_its_source() -> None:
    x = torch.ones(3)
    first, second = x.data, x.detach()
    first.resize_(5)
    second.set_(torch.ones(7))
    assert [t.shape[0] for t in (x, first, second)] == [3, 5, 7]


def test_data_that_is_replaced_keeps_identity_flag_hooks_and_version() -> None:
    x, seen = leaf(), []
    x.register_hook(lambda grad: seen.append(grad.dtype))
    before = (x * 2).grad_fn
    new = torch.ones(2, dtype=torch.float64)
    x.data = new
    new.add_(1)
    assert x.tolist() == [2, 2]
    assert x._version == 0
    after = x * 2
    assert after.grad_fn.next_functions[0][0] is not before.next_functions[0][0]
    after.sum().backward()
    assert seen == [torch.float64]
    for value, kind, message in [
        (1, TypeError, "Variable data has to be a tensor"),
        (torch.ones(2, dtype=torch.int64), RuntimeError, "must be floating point or complex"),
    ]:
        with pytest.raises(kind, match=message):
            x.data = value


def test_a_version_counts_each_write_once() -> None:
    x = torch.ones(4)
    view, alias = x[:2], x.detach()
    view.add_(1)
    assert x._version == view._version == alias._version == 1
    torch.add(x, 1, out=x)
    x.resize_(4)  # The size that it has.
    assert x._version == 2
    x.resize_(6)
    x.zero_()
    x[0] = 1
    assert x._version == 5
    x.set_(torch.ones(3))
    assert x._version == 6
    x.requires_grad_()
    assert x._version == 6


def test_a_saved_tensor_that_is_set_to_other_memory_was_written_to() -> None:
    weight, x = leaf(), torch.ones(2)
    x.add_(1)
    y = weight * x
    x.set_(torch.full((2,), 100.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_memory_that_is_set_has_a_version_for_each_of_its_tensors() -> None:
    source, x = torch.ones(3), torch.zeros(3)
    x.set_(source)
    assert (source._version, x._version) == (0, 1)
    source.add_(1)
    assert (source._version, x._version) == (1, 1)
    assert x.tolist() == [2, 2, 2]


def test_writes_made_elsewhere_are_counted_for_one_or_several() -> None:
    x, y = torch.ones(2), torch.ones(2)
    with torch.inference_mode():
        without = torch.ones(2)
    increment_version(x)
    increment_version([x, y, without])
    increment_version(t for t in (x,))
    assert (x._version, y._version) == (3, 1)
    with pytest.raises(RuntimeError, match="expect a Iterable"):
        increment_version(1)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="each element of the iterable to be a tensor"):
        increment_version([1])  # type: ignore[list-item]


def test_the_old_resize_keeps_the_elements_and_their_gradients() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        y = x.resize(3, 2)
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert y.grad_fn.name() == "ResizeBackward"
    (y * weights).sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(RuntimeError, match="requested resize to 2x2"):
        torch.autograd._functions.Resize.apply(x, (2, 2))


def test_resize_as_takes_the_shape_of_another_tensor() -> None:
    x = torch.arange(4)
    assert x.resize_as_(torch.zeros(2, 1)) is x
    assert x.tolist() == [[0], [1]]
    assert x._version == 1
