"""`torch.testing`: messages as PyTorch's, and draws as PyTorch's (recorded with version 2.15)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.testing import FileCheck, assert_allclose, assert_close, make_tensor

T = torch.tensor


def message(*args: Any, **kwargs: Any) -> str:
    with pytest.raises((AssertionError, TypeError, ValueError)) as caught:
        assert_close(*args, **kwargs)
    return f"{caught.type.__name__}: {caught.value}"


def test_what_is_close() -> None:
    for actual, expected in (
        (1, 1),
        (1.0, 1.0 + 1e-8),
        (T([1.0]), T([1.0 + 1e-6])),
        (T([1], dtype=torch.int8), T([1], dtype=torch.int8)),
        (T([]), T([])),
        ([1, (2, {"a": T([3.0])})], [1, (2, {"a": T([3.0])})]),
        (range(3), [0, 1, 2]),
        (None, None),
        (np.array([1.0]), np.array([1.0])),
        (np.bool_(True), True),
        (T([float("inf")]), T([float("inf")])),
        (T([[1.0, 0]]).to_sparse(), T([[1.0, 0]]).to_sparse()),
        (torch.nn.Parameter(T([1.0])), T([1.0])),
    ):
        assert_close(actual, expected)
    assert_close(T([float("nan")]), T([float("nan")]), equal_nan=True)
    assert_close(1, 1.0, check_dtype=False)
    assert_close(T([1.0]), T([1]), check_dtype=False)


MESSAGES = [
    (
        T([1.0, 2]),
        T([1.0, 3]),
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)",
    ),
    (
        T([1, 2]),
        T([1, 4]),
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 2 at index (1,)\n"
        "Greatest relative difference: 0.5 at index (1,)",
    ),
    (
        T(1.0),
        T(2.0),
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-05 allowed)\n"
        "Relative difference: 0.5 (up to 1.3e-06 allowed)",
    ),
    (
        1,
        2,
        "Scalars are not equal!\n\nExpected 2 but got 1.\n"
        "Absolute difference: 1\nRelative difference: 0.5",
    ),
    (True, False, "Booleans mismatch: True is not False"),
    (None, 3, "None mismatch: None is not 3"),
    ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
    (
        {"a": 1},
        {"b": 1},
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']",
    ),
    (
        T([1.0]),
        T([1.0, 2]),
        "The values for attribute 'shape' do not match: torch.Size([1]) != torch.Size([2]).",
    ),
    (
        T([1.0]),
        T([1]),
        "The values for attribute 'dtype' do not match: torch.float32 != torch.int64.",
    ),
]


@pytest.mark.parametrize(("actual", "expected", "text"), MESSAGES)
def test_messages(actual: Any, expected: Any, text: str) -> None:
    assert message(actual, expected) == f"AssertionError: {text}"
    nested = message({"k": [0, actual]}, {"k": [0, expected]})
    assert nested == f"AssertionError: {text}\n\nThe failure occurred for item ['k'][1]"


def test_what_cannot_be_compared() -> None:
    assert message("a", "a") == (
        "TypeError: No comparison pair was able to handle inputs of type <class 'str'> and "
        "<class 'str'>."
    )
    assert "TypeError: No comparison pair" in message(np.array([1.0]), T([1.0]))
    assert message(1, 2, rtol=1) == (
        "ValueError: Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."
    )
    mine = torch.nn.Parameter(T([1.0]))
    assert "TypeError" in message(mine, T([1.0]), allow_subclasses=False)


def test_structure_is_told_before_values() -> None:
    assert "length of the sequences" in message([1, [2]], [9, [2, 3]])


def test_the_caller_has_the_last_word() -> None:
    assert message(1, 2, msg="boo") == "AssertionError: boo"
    assert message([1], [2], msg=lambda text: f"<{text}>").endswith("item [0]>")


def test_strides_and_sparse_values_are_compared() -> None:
    x = T([[1.0, 2], [3, 4]])
    assert "'stride()' do not match: (1, 2) != (2, 1)." in message(
        x.t(), T([[1.0, 3], [2, 4]]), check_stride=True
    )
    sparse = T([[1.0, 0]]).to_sparse()
    assert "Sparse COO values are not close!" in message(sparse, T([[2.0, 0]]).to_sparse())
    assert "The number of specified values in sparse COO tensors" in message(
        sparse, T([[2.0, 1]]).to_sparse()
    )
    assert "'layout' do not match" in message(sparse, T([[1.0, 0]]))
    assert_close(sparse, T([[1.0, 0]]), check_layout=False)
    assert "Sparse CSR col_indices are not equal!" in message(
        T([[1.0, 0]]).to_sparse_csr(), T([[0, 1.0]]).to_sparse_csr()
    )


def test_data_classes_are_walked() -> None:
    @dataclasses.dataclass
    class Pair:
        a: Any
        b: Any

    assert_close(Pair(1, T([1.0, 2])), Pair(1, T([1.0, 2])))
    assert message(Pair(1, T([1.0, 2])), Pair(1, T([1.0, 3]))).endswith("item ['b']")
    assert "Pair(a=1, b=2)" in message(Pair(1, 2), Pair(1, 3))


def test_the_older_comparison_warns() -> None:
    with pytest.warns(FutureWarning, match="deprecated since 1.12"):
        assert_allclose([1.0, float("nan")], np.array([1.0 + 1e-5, float("nan")]))
    with (
        pytest.warns(FutureWarning, match="deprecated"),
        pytest.raises(AssertionError, match="not close"),
    ):
        assert_allclose(T([1.0]), T([1.1]))


def test_draws_are_pytorchs() -> None:
    torch.manual_seed(0)
    recorded: dict[Any, Any] = {
        torch.float32: [
            [-0.06738138198852539, 4.8279924392700195],
            [-7.407406330108643, -6.623451232910156],
        ],
        torch.int64: [[2, -2], [-4, 0]],
        torch.bool: [[True, True], [True, False]],
        torch.complex64: [
            [(-8.598136901855469 - 5.960538864135742j), (-3.710007905960083 + 0.3333921432495117j)],
            [(3.558016777038574 + 5.400205135345459j), (-6.101469993591309 - 3.91916561126709j)],
        ],
    }
    for dtype, values in recorded.items():
        assert make_tensor((2, 2), dtype=dtype, device="cpu").tolist() == values


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(torch.bool, 0, 1), (torch.uint8, 0, 9), (torch.int64, -9, 9), (torch.float64, -9, 9)],
)
def test_numbers_are_within_bounds(dtype: Any, least: int, most: int) -> None:
    x = make_tensor(1000, dtype=dtype, device="cpu")
    assert least <= x.min() <= x.max() <= most
    assert len(x.unique()) == min(most - least + 1, 1000) or dtype == torch.float64


def test_ways_of_drawing() -> None:
    x = make_tensor(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True)
    assert (x.stride(), x.storage_offset()) == ((6, 2), 1)
    assert make_tensor(3, dtype=torch.complex64, device="cpu", requires_grad=True).requires_grad
    ones = make_tensor(3, dtype=torch.int64, device="cpu", low=0, high=1, exclude_zero=True)
    assert ones.tolist() == [1, 1, 1]
    wide = make_tensor(99, dtype=torch.float64, device="cpu", low=-1.7e308, high=1.7e308)
    assert wide.isfinite().all()
    assert make_tensor((), dtype=torch.int8, device="cpu").shape == ()
    for arguments, error, text in (
        ({"low": 5, "high": 3}, ValueError, "`low` must be less than `high`, but got 5 >= 3"),
        ({"low": 500, "high": 600}, ValueError, r"only supports \[-128, 128\)"),
        ({"requires_grad": True}, ValueError, "not supported for boolean and integral dtypes"),
        ({"noncontiguous": True, "memory_format": 1}, ValueError, "mutually exclusive"),
        ({"low": float("nan")}, ValueError, "cannot be NaN"),
    ):
        with pytest.raises(error, match=text):
            make_tensor(3, dtype=torch.int8, device="cpu", **arguments)


def test_searches_in_texts() -> None:
    FileCheck().check("a").check_not("b").check("c").run("a c b")
    FileCheck().check("a").check_next("b").check_same("c").run("a\nb c")
    FileCheck().check_dag("b").check_dag("a").check_regex("[0-9]+").run("a b 42")
    FileCheck().check_count("a", 2).run("a a a")
    FileCheck().check_source_highlighted("bad").run("a bad b\n  ~~~ \n")
    FileCheck().run_from_annotations("# CHECK: a\n# CHECK-NOT: x\n# CHECK: b", "a b")
    with pytest.raises(RuntimeError, match="Expected to not find"):
        FileCheck().run("# CHECK: a\n# CHECK-NOT: x\n# CHECK: b", "a x b")
    for check, text in (
        (FileCheck().check("x"), 'Expected to find "x" but did not find it'),
        (FileCheck().check("a").check_not("b").check("c"), 'Expected to not find "b" but found it'),
        (FileCheck().check_count("a", 1, exactly=True), 'Expected to not find "a"'),
        (FileCheck().check("a").check_next("b"), "Expected to find"),
        (FileCheck(), "No checks have been added"),
    ):
        with pytest.raises(RuntimeError, match=text):
            check.run("a b c a")
