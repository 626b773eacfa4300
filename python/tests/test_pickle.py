"""Pickles and copies of tensors and of what lies around them."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


class Slotted(torch.Tensor):
    __slots__ = ("first",)
    first: Any


class Keeping(torch.Tensor):
    def __getstate__(self) -> Any:
        return {"kept": 1}

    def __setstate__(self, state: Any) -> None:
        self.back = state


BOTH = pytest.mark.parametrize("again", [pickled, copy.deepcopy])


@BOTH
def test_views_of_one_storage_share_it_afterwards(again: Callable[[Any], Any]) -> None:
    x = torch.arange(6.0).view(2, 3)
    whole, row = again((x, x[1]))
    row[0] = 77
    assert whole.tolist() == [[0.0, 1.0, 2.0], [77.0, 4.0, 5.0]]
    assert x[1, 0].item() == 3.0


@BOTH
def test_geometry_and_dtype_survive(again: Callable[[Any], Any]) -> None:
    x = torch.arange(6)
    for tensor in (x.view(2, 3).t(), x[3:], torch.ones(1).expand(3), torch.empty(0, 2), x[2]):
        back = again(tensor)
        assert torch.equal(back, tensor)
        assert back.stride() == tensor.stride()
        assert back.storage_offset() == tensor.storage_offset()
    for dtype in (torch.bfloat16, torch.bool, torch.complex64, torch.uint8, torch.uint32):
        assert again(torch.ones(2).to(dtype)).dtype is dtype


@BOTH
def test_slots_and_attributes_survive(again: Callable[[Any], Any]) -> None:
    x = torch.ones(2).as_subclass(Slotted)
    x.first = [1]
    x.second = [2]  # type: ignore[attr-defined]
    back = again(x)
    assert (type(back), back.first, back.second) == (Slotted, [1], [2])
    assert back.first is not x.first


def test_a_class_that_says_what_it_keeps_is_asked() -> None:
    back = pickled(torch.ones(2).as_subclass(Keeping))
    assert back.back == {"kept": 1}


def test_pickles_hold_no_history_no_grad_and_no_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    result = pickled(x * 2)
    assert result.is_leaf
    assert result.requires_grad
    assert pickled(x).grad is None
    assert copy.deepcopy(x).grad.tolist() == [1.0, 1.0]
    x.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match=r"backward hook .*lambda.* will not be serialized"):
        pickled(x)


def test_a_hook_may_say_that_it_need_not_be_kept() -> None:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: grad))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickled(x).requires_grad


def test_set_state_takes_the_forms_of_old_files() -> None:
    x = torch.ones(2)
    x.__setstate__((torch.UntypedStorage([0, 0, 128, 63, 0, 0, 0, 64]), 1, (1,), (1,)))
    assert x.tolist() == [2.0]
    x.__setstate__((True, None, {}))
    assert x.requires_grad
    x.__setstate__((torch.zeros(3), None, {}, False, None))
    assert x.tolist() == [0.0, 0.0, 0.0]
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="__setstate__ can be only called on leaf Tensors"):
        (torch.ones(2, requires_grad=True) * 2).__setstate__({})
    with pytest.raises(ValueError, match="2 to 5 parts"):
        x.__setstate__((1,))


@pytest.mark.parametrize("again", [pickled, copy.deepcopy, copy.copy])
def test_a_generator_goes_on_from_the_same_state(again: Callable[[Any], Any]) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    other = again(generator)
    expected = torch.rand(4, generator=generator)
    assert torch.equal(torch.rand(4, generator=other), expected)


@BOTH
def test_mode_contexts_come_back_without_switching_anything(again: Callable[[Any], Any]) -> None:
    for context in (torch.no_grad(), torch.inference_mode(), torch.enable_grad()):
        assert type(again(context)) is type(context)
    off = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    back = again(off)
    assert torch.is_grad_enabled()
    with back:
        assert not torch.is_grad_enabled()


def test_hooks_of_a_tensor_cannot_be_deleted() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Deletion of _backward_hooks not allowed"):
        del x._backward_hooks
