"""NumPy arrays as operands of a tensor's operators."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import pullback as torch

DTYPES = ["bool", "uint8", "int16", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_an_array_is_compared_element_by_element(dtype: str, compare: Any) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    other = torch.tensor([[0, 1, 0], [1, 1, 1]]).to(getattr(torch, dtype))
    expected = torch.from_numpy(compare(array, other.numpy()))
    for got in (compare(other, array), compare(array, other)):
        assert isinstance(got, torch.Tensor)
        assert (got.dtype, got.tolist()) == (torch.bool, expected.tolist())


def test_arrays_are_broadcast_and_promoted() -> None:
    got = torch.tensor([[1], [2]]) == np.array([1.0, 2.0])
    assert got.tolist() == [[True, False], [False, True]]
    assert (torch.tensor([1.0, 2.0]) == np.array(2)).tolist() == [False, True]
    assert (torch.tensor([1.0, 2.0]) == np.array([[1, 2, 3]])[:, :2]).tolist() == [[True, True]]


def test_arrays_of_other_sizes_are_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"tensor a \(4\) must match the size of tensor b \(3\)"):
        _ = torch.arange(4) == np.arange(3)


@pytest.mark.parametrize("array", [np.array([None, 1]), np.array(["a", "b"])])
def test_arrays_that_no_tensor_can_hold_are_not_equal(array: Any) -> None:
    assert (torch.arange(2) == array) is False
    assert (torch.arange(2) != array) is True


def test_an_array_that_cannot_be_written_is_compared_without_warning(recwarn: Any) -> None:
    array = np.arange(3)
    array.flags.writeable = False
    assert (torch.arange(3) == array).all()
    assert not recwarn.list


@pytest.mark.parametrize("array", [np.array([1.0, 2.0, 6.0]), np.array(6.0)])
def test_an_array_is_divided_by_a_tensor(array: Any) -> None:
    divisor = torch.tensor([1.0, 4.0, 3.0], dtype=torch.float64)
    got: Any = array / divisor
    assert isinstance(got, torch.Tensor)
    torch.testing.assert_close(got, torch.from_numpy(np.asarray(array / divisor.numpy())))


@pytest.mark.parametrize("dividend", ["ab", [1, 2], None, object()])
def test_what_is_no_number_is_not_divided(dividend: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand type"):
        dividend / torch.tensor([1, 2])


@pytest.mark.parametrize(
    "name", ["__add__", "__isub__", "__imul__", "__rtruediv__", "__eq__", "__lt__", "__iand__"]
)
def test_operands_of_unknown_types_are_left_to_these(name: str) -> None:
    assert getattr(torch.ones(2), name)(object()) is NotImplemented


def test_an_unknown_operand_may_add_in_place() -> None:
    class Other:
        def __radd__(self, tensor: Any) -> Any:
            return ("sum", tensor)

    x: Any = torch.ones(2)
    x += Other()
    assert x[0] == "sum"
    y: Any = torch.ones(2)
    with pytest.raises(TypeError, match="unsupported operand type"):
        y += object()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.complex64])
def test_only_integers_and_bools_are_inverted(dtype: torch.dtype) -> None:
    phrase = "only implemented on integer and Boolean-type tensors"
    with pytest.raises(TypeError, match=phrase):
        ~torch.ones(2, dtype=dtype)
