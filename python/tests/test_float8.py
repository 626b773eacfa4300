"""The floating dtypes of one byte: what PyTorch computes with them, and what it refuses.

The calls are those of `recorded/float8_program.py`; what PyTorch did was recorded by
`recorded/record_float8.py`. Codes that are written here follow from the formats' definitions.
"""

from __future__ import annotations

import copy
import json
import lzma
import pickle
import sys
from io import BytesIO
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).parent / "recorded"
sys.path.insert(0, str(RECORDED))

import float8_program as program  # noqa: E402

NAMES = program.NAMES
FLOAT8 = NAMES[:5]

# Where the outcome is meant to differ, and why.
PAIRS = "float4_e2m1fn_x2"
DIFFERENT = {
    # The sign of zeros and NaNs goes, as that of other floats does; PyTorch leaves it.
    *(("float8_e4m3fn", "abs"), ("float8_e5m2", "abs")),
    # A complex number is refused by the name of the dtype that it does not fit.
    *((name, call) for name in NAMES for call in ("tensor 1j", "fill one 1j")),
    *((PAIRS, call) for call in ("full 1j", "fill 1j")),
    # Pairs of four bits move wherever float8 does; PyTorch lacks some of the kernels.
    *((PAIRS, call) for call in ("cat", "index", "index mask", "masked_select")),
    # They have no numbers that could be compared; PyTorch compares what it takes the bytes for.
    *((PAIRS, call) for call in ("eq", "ne", "isnan")),
}


@pytest.fixture(scope="module")
def recorded() -> dict[tuple[str, str], Any]:
    facts = json.loads(lzma.decompress((RECORDED / "float8.json.xz").read_bytes()))["facts"]
    return {(name, call): found for name, call, found in facts}


def dtype_of(name: str) -> Any:
    return getattr(torch, name)


def of_codes(codes: list[int], name: str) -> torch.Tensor:
    return torch.tensor(codes, dtype=torch.uint8).view(dtype_of(name))


def codes_of(tensor: torch.Tensor) -> list[int]:
    found: list[int] = tensor.contiguous().view(torch.uint8).flatten().tolist()
    return found


@pytest.mark.parametrize("name", FLOAT8)
def test_conversions_give_the_bits_of_pytorch(recorded: dict[Any, Any], name: str) -> None:
    # (What integer NaN becomes differs between processors.)
    few = of_codes([0, 1, 2, 63, 64, 126, 127, 128, 192, 254, 255], name)
    is_number = (~few.isnan()).tolist()
    for call, found in program.conversions(torch, dtype_of(name)).items():
        expected = recorded[name, f"conversion {call}"]
        if call == "to int64":
            found, expected = (list(compress(all, is_number)) for all in (found, expected))
        assert found == expected, call


def has_equal_numbers(found: Any, expected: Any) -> bool:
    """Whether results in a wider dtype are equal but for rounding and the bits of NaNs."""
    names = ("torch.bfloat16", "torch.float32")
    if "error" in found or found["dtype"] not in names or found["dtype"] != expected["dtype"]:
        return False
    if found["shape"] != expected["shape"] or not isinstance(expected["bytes"], list):
        return False
    dtype = dtype_of(found["dtype"].removeprefix("torch."))
    numbers = [
        torch.tensor(each["bytes"], dtype=torch.uint8).view(dtype) for each in (found, expected)
    ]
    return torch.allclose(*numbers, equal_nan=True)


def agrees(found: Any, expected: Any, name: str) -> bool:
    """Whether an outcome is the recorded one; of refusals the class and the phrase."""
    if isinstance(expected, list):
        pairs = zip(found, expected, strict=True)
        return isinstance(found, list) and all(agrees(f, e, name) for f, e in pairs)
    if "error" not in expected:
        return bool(found == expected) or has_equal_numbers(found, expected)
    if expected["error"] == "AssertionError":
        # (PyTorch's own assertions: any clear refusal is better.)
        return found.get("error") in {"RuntimeError", "NotImplementedError", "TypeError"}
    scalar_name = name[0].upper() + name[1:]
    phrase = f"not implemented for '{scalar_name}'"
    text = expected["text"]
    return bool(
        found.get("error") == expected["error"]
        and (phrase in found["text"] if phrase in text else text in found["text"])
    )


@pytest.mark.parametrize("family", ["numbers", "moves", "ops", "scaled", "gradients"])
@pytest.mark.parametrize("name", NAMES)
def test_calls_do_what_pytorch_does(recorded: dict[Any, Any], name: str, family: str) -> None:
    wrong = []
    for call, run in getattr(program, family)(torch, dtype_of(name)).items():
        expected = recorded[name, f"{family} {call}"]
        found = program.outcome(torch, run)
        if (name, call) not in DIFFERENT and not agrees(found, expected, name):
            wrong.append(f"{call}: {found}, not {expected}")
    assert not wrong, "\n".join(wrong)


def test_the_formats_by_their_definitions() -> None:
    one = {"float8_e4m3fn": 0x38, "float8_e5m2": 0x3C, "float8_e4m3fnuz": 0x40}
    one |= {"float8_e5m2fnuz": 0x40, "float8_e8m0fnu": 0x7F}
    for name, code in one.items():
        assert codes_of(torch.tensor([1.0]).to(dtype_of(name))) == [code]
        assert of_codes([code], name).tolist() == [1.0]
    assert of_codes([0x7E], "float8_e4m3fn").item() == 448
    assert of_codes([0x7B], "float8_e5m2").item() == 57344
    assert of_codes([0x7C], "float8_e5m2").item() == float("inf")
    assert of_codes([0x80], "float8_e4m3fnuz").isnan().item()
    assert of_codes([0xFF], "float8_e8m0fnu").isnan().item()
    # Ties go to the even code; scales round up from half on.
    assert codes_of(torch.tensor([1.0625, 1.1875]).to(torch.float8_e4m3fn)) == [0x38, 0x3A]
    assert codes_of(torch.tensor([1.5, 1.25]).to(torch.float8_e8m0fnu)) == [0x80, 0x7F]


@pytest.mark.parametrize("name", NAMES)
def test_files_keep_the_bytes(tmp_path: Path, name: str) -> None:
    x = of_codes([1, 2, 64, 130, 255, 0], name).reshape(2, 3)
    for found in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        torch.from_dlpack(x),
    ):
        assert (found.dtype, found.shape, codes_of(found)) == (x.dtype, x.shape, codes_of(x))
    file = BytesIO()
    torch.save({"x": x, "dtype": x.dtype}, file)
    file.seek(0)
    state = torch.load(file)
    assert (state["dtype"], codes_of(state["x"])) == (x.dtype, codes_of(x))
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype


def test_other_views_share_the_bytes() -> None:
    x = torch.zeros(4, dtype=torch.float8_e4m3fn)
    x.view(torch.uint8)[1] = 0x38
    assert x.tolist() == [0, 1, 0, 0]
    assert x.view(torch.float8_e5m2).tolist() == [0, 0.5, 0, 0]
    assert x.view(torch.float16).shape == (2,)
    pairs = x.view(torch.float4_e2m1fn_x2)
    assert codes_of(pairs.clone()) == [0, 0x38, 0, 0]


def test_strided_operands_are_converted_as_dense_ones() -> None:
    wide = torch.arange(0, 3000, dtype=torch.float32).reshape(50, 60) / 7
    for seen in (wide.t(), wide[:, ::7], wide[3:4].expand(40, 60), wide.flip(1)):
        narrow = seen.to(torch.float8_e5m2)
        assert codes_of(narrow) == codes_of(seen.contiguous().to(torch.float8_e5m2))
        assert torch.equal(narrow.t().to(torch.float32), narrow.t().contiguous().to(torch.float32))


def test_no_promotion_names_both_dtypes() -> None:
    a, b = torch.zeros(2, dtype=torch.float8_e4m3fn), torch.zeros(2, dtype=torch.float8_e5m2)
    phrase = "Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and "
    for other, name in ((b, "Float8_e5m2"), (torch.zeros(2), "Float"), (torch.ones(2) > 0, "Bool")):
        for call in (torch.add, torch.mul, torch.eq, torch.result_type):
            with pytest.raises(RuntimeError, match=phrase + name):
                call(a, other)
    with pytest.raises(RuntimeError, match="attempted to promote"):
        torch.tensor([a[0], torch.tensor(1.0)])


def test_refusals_leave_tensors_as_they_were() -> None:
    x = of_codes([1, 2, 3], "float8_e4m3fn")
    for call in (
        lambda: x.add_(x),
        lambda: x.mul_(2),
        x.exp_,
        x.normal_,
        lambda: x.fill_(1e6),
        lambda: x.masked_fill_(torch.tensor([True, False, True]), 1.0),
        lambda: x.index_fill_(0, torch.tensor([0]), 1.0),
    ):
        with pytest.raises((RuntimeError, NotImplementedError)):
            call()
        assert codes_of(x) == [1, 2, 3]
        assert x._version == 0


def test_sparse_tensors_of_them_are_refused() -> None:
    values = of_codes([1, 2], "float8_e4m3fn")
    with pytest.raises(NotImplementedError, match="Float8_e4m3fn"):
        torch.sparse_coo_tensor(torch.tensor([[0, 1]]), values, (2,))


def test_vmap_and_forward_mode_go_through_conversions() -> None:
    x = torch.tensor([[1.0, 300.7], [0.3, -5.0]])
    there_and_back = lambda row: row.to(torch.float8_e4m3fn).to(torch.float32)  # noqa: E731
    assert torch.equal(torch.func.vmap(there_and_back)(x), there_and_back(x))
    primal, tangent = torch.func.jvp(there_and_back, (x,), (torch.full((2, 2), 1.07),))
    assert torch.equal(primal, there_and_back(x))
    # The tangent is converted as the values are.
    assert torch.equal(tangent, torch.full((2, 2), 1.125))


def test_a_scaled_product_has_the_gradient_of_the_rounded_factors() -> None:
    w = torch.tensor([[0.3, -1.7], [2.2, 0.9]], requires_grad=True)
    x = torch.tensor([[1.0, 2.0], [-0.5, 4.0]])
    rounded = w.to(torch.float8_e4m3fn)
    (x @ rounded.to(torch.float32)).sum().backward()
    # Exact: x's columns sum to 0.5 and 6.
    assert w.grad is not None
    assert w.grad.tolist() == [[0.5, 0.5], [6.0, 6.0]]


@pytest.mark.parametrize("name", ["bits8", "quint8", "qint32", "int4", "uint2"])
def test_dtypes_that_are_missing_say_why(name: str) -> None:
    placeholder = getattr(torch, name)
    with pytest.raises((NotImplementedError, TypeError)):
        torch.zeros(2, dtype=placeholder)
