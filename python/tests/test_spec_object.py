"""Tensors as Python objects, paragraph by paragraph: numbers, old names, exchange, memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback as torch


@pytest.mark.parametrize("convert", [float, int, complex])
@pytest.mark.parametrize("count", [0, 2])
def test_only_one_element_becomes_a_number_of_python(convert: Any, count: int) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python"):
        convert(torch.ones(count))
    with pytest.raises(RuntimeError, match=rf"a Tensor with {count} elements cannot be converted"):
        torch.ones(count).item()


def test_complex_numbers_become_real_ones_only_without_imaginary_part() -> None:
    for convert in (float, int):
        with pytest.raises(RuntimeError, match="without overflow"):
            convert(torch.tensor(2 + 3j))
        assert convert(torch.tensor(2 + 0j)) == 2
    assert complex(torch.tensor(2 + 3j)) == 2 + 3j


def test_the_native_base_is_neither_made_nor_subclassed() -> None:
    base = torch._C.TensorBase
    with pytest.raises(RuntimeError, match="Cannot directly construct TensorBase"):
        base()
    with pytest.raises(RuntimeError, match="Cannot subclass _TensorBase directly"):
        type("Mine", (base,), {})


def test_dictionaries_of_hooks_cannot_be_deleted() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not allowed"):
        del x._backward_hooks
    with pytest.raises(RuntimeError, match="not allowed"):
        del x._post_accumulate_grad_hooks


def test_setting_the_dictionary_of_hooks_to_nothing_takes_them_away() -> None:
    x: Any = torch.ones(1, requires_grad=True)
    for nothing in (None, {}):
        x.register_hook(lambda g: g * 100)
        x._backward_hooks = nothing
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2]
        x.grad = None
    with pytest.raises(TypeError, match="can only be a dict or None"):
        x._backward_hooks = 3


def test_the_old_name_of_tensors_takes_tensors_or_nothing() -> None:
    variable: Any = torch.autograd.Variable
    assert variable().shape == (0,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        variable(3)
    with pytest.raises(NotImplementedError, match="names"):
        variable(torch.ones(1), name="mine")


def test_capsules_go_through_the_module_of_their_name() -> None:
    x = torch.ones(2)
    capsule = torch.utils.dlpack.to_dlpack(x)
    shared = torch.utils.dlpack.from_dlpack(capsule)
    shared[0] = 5
    assert x.tolist() == [5, 1]
    with pytest.raises(RuntimeError, match=r"only once|consumed"):
        torch.utils.dlpack.from_dlpack(capsule)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        torch.utils.dlpack.to_dlpack(torch.ones(1, requires_grad=True))


def test_memory_that_is_not_writable_is_warned_of_once() -> None:
    array = np.ones(2)
    array.flags.writeable = False
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        torch.from_numpy(array)
        torch.frombuffer(b"ab", dtype=torch.uint8)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.from_numpy(array)
        torch.frombuffer(b"ab", dtype=torch.uint8)
    assert [str(w.message) for w in seen] == []
