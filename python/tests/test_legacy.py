"""The older ways to make tensors: one class per dtype, ``Tensor(...)`` and ``x.new(...)``."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import pullback as torch


@pytest.mark.parametrize("make", [torch.Tensor, torch.FloatTensor, torch.ones(1).new])
def test_legacy_constructors_take_sizes_data_tensors_and_storages(make: Any) -> None:
    assert make().shape == (0,)
    assert make(2, 3).shape == (2, 3)
    assert make(torch.Size([2])).shape == (2,)
    assert make(size=(1, 2)).shape == (1, 2)
    assert make([[1, 2]]).tolist() == [[1.0, 2.0]]
    assert make(np.array([1, 2])).tolist() == [1.0, 2.0]
    assert make(data=[3]).tolist() == [3.0]
    assert make(torch.UntypedStorage([0, 0, 128, 63])).tolist() == [1.0]
    x = torch.ones(2, requires_grad=True)
    alias = make(x)
    assert alias is not x
    assert alias.data_ptr() == x.data_ptr()
    assert alias.requires_grad
    assert make([1, 2], device="cpu").dtype is torch.float32


@pytest.mark.parametrize("make", [torch.Tensor, torch.FloatTensor, torch.ones(1).new])
def test_legacy_constructors_refuse_what_they_cannot_mean(make: Any) -> None:
    for arguments, keywords, match in [
        ((3.5,), {}, "data must be a sequence"),
        ((True,), {}, "data must be a sequence"),
        (({1: 2},), {}, "data must be a sequence"),
        (("a",), {}, "invalid data type 'str'"),
        ((2, "a"), {}, "failed to unpack the object at pos 2"),
        (([1], 3), {}, "invalid combination of arguments"),
        ((2,), {"requires_grad": True}, "invalid combination of arguments"),
    ]:
        with pytest.raises(TypeError, match=match):
            make(*arguments, **keywords)
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but"):
        make([1], device="cuda")
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        make(-1)


def test_only_the_class_of_all_tensors_takes_tensors_of_any_dtype() -> None:
    whole = torch.tensor([1, 2])
    assert torch.Tensor(whole).dtype is torch.int64
    with pytest.raises(TypeError, match=r"expected torch\.FloatTensor"):
        torch.FloatTensor(whole)
    with pytest.raises(TypeError, match=r"expected torch\.DoubleTensor"):
        torch.ones(1).double().new(torch.ones(1))


def test_each_dtype_has_a_class_that_checks_and_converts() -> None:
    x = torch.ones(2)
    assert isinstance(x, torch.FloatTensor)
    assert not isinstance(x, torch.DoubleTensor)
    assert isinstance(torch.nn.Parameter(x), torch.FloatTensor)
    assert torch.LongTensor([1.5, 2.9]).tolist() == [1, 2]
    assert torch.BoolTensor([1, 0]).dtype is torch.bool
    for kind in (torch.HalfTensor, torch.BFloat16Tensor, torch.CharTensor, torch.ShortTensor):
        assert x.type(kind).dtype is kind.dtype
    assert x.type("torch.LongTensor").dtype is torch.int64
    assert x.double().type(torch.Tensor).dtype is torch.float32
    assert x.type() == "torch.FloatTensor"
    for wrong in ("LongTensor", "foo", float):
        with pytest.raises(ValueError, match="invalid type"):
            x.type(wrong)
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        x.type(5)


def test_the_classes_are_constants() -> None:
    assert pickle.loads(pickle.dumps(torch.FloatTensor)) is torch.FloatTensor
    assert copy.deepcopy(torch.FloatTensor) is torch.FloatTensor
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    with pytest.raises(TypeError, match=r"immutable type 'torch\.FloatTensor'"):
        torch.FloatTensor.x = 1
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (torch.FloatTensor,), {})


def test_classes_of_cuda_can_be_named_but_not_called() -> None:
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="only cpu"):
        torch.cuda.FloatTensor([1])  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="not available"):
        torch.ones(1).type("torch.cuda.FloatTensor")


def test_the_default_tensor_type_is_a_dtype() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.set_default_tensor_type(torch.DoubleTensor)
            assert torch.Tensor([1]).dtype is torch.float64
            assert torch.FloatTensor([1]).dtype is torch.float32
        finally:
            torch.set_default_tensor_type("torch.FloatTensor")
        assert torch.get_default_dtype() is torch.float32
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_tensor_type(torch.LongTensor)


def test_classes_of_sparse_tensors() -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    kinds = torch.sparse
    x = kinds.FloatTensor(indices, values, torch.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert kinds.FloatTensor(indices, values).shape == (2, 2)
    assert kinds.FloatTensor(2, 3)._nnz() == 0
    assert kinds.FloatTensor(torch.Size([2, 2])).shape == (2, 2)
    assert kinds.FloatTensor().shape == (0,)
    # (Values keep their dtype.)
    assert kinds.DoubleTensor(indices, values).dtype == torch.float32
    assert kinds.DoubleTensor(2).dtype == torch.float64
    assert isinstance(x, kinds.FloatTensor)
    assert not isinstance(values, kinds.FloatTensor)
    assert not isinstance(x, torch.FloatTensor)
    assert pickle.loads(pickle.dumps(kinds.LongTensor)) is kinds.LongTensor
    assert pickle.loads(pickle.dumps(torch.LongTensor)) is torch.LongTensor


def test_what_a_list_of_coordinates_makes_anew() -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor(indices, values, (2, 2)).double()
    made = x.new(indices, values, torch.Size([3, 4]))
    assert (made.layout, made.shape, made.dtype) == (torch.sparse_coo, (3, 4), torch.float32)
    assert made.to_dense()[1, 0] == 2
    assert x.new(indices, values.half()).dtype is torch.float16
    assert x.new(indices=indices, values=values, size=[3, 3]).shape == (3, 3)
    for empty in (x.new(3, 4), x.new(torch.Size([3, 4])), x.new(size=(3, 4), device="cpu")):
        assert (empty.layout, empty.shape, empty.dtype) == (torch.sparse_coo, (3, 4), x.dtype)
        assert empty._nnz() == 0
    assert x.new().shape == (0,)


def test_what_a_list_of_coordinates_refuses_to_make() -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor(indices, values, (2, 2))
    makers = (x.new, torch.sparse.FloatTensor)
    for make in makers:
        for bad in ((x,), (3.5,), (indices,), (indices, values, 3)):
            with pytest.raises(TypeError, match="invalid combination of arguments"):
                make(*bad)
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            make(other=x)
        with pytest.raises(TypeError, match=r"only accepts sizes"):
            make([3, 3])
        with pytest.raises(TypeError, match="3 positional arguments but 4 were given"):
            make(indices, values, 3, 3)
        with pytest.raises(RuntimeError, match="expected scalar type Long but found Int"):
            make(indices.int(), values)
        with pytest.raises(RuntimeError, match="expects device type: cpu but device type: meta"):
            make(3, 3, device="meta")
    with pytest.raises(RuntimeError, match="is made of its parts"):
        x.to_sparse_csr().new(3, 3)


def test_classes_say_on_which_device_their_tensors_are() -> None:
    for kind in torch._tensor_classes:
        assert kind.is_cuda == kind.__module__.startswith("torch.cuda")
        assert kind.is_xpu is False
