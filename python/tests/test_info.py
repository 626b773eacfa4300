"""What ``finfo`` and ``iinfo`` tell; texts and numbers are recorded runs of PyTorch 2.15."""

import copy
import math

import numpy as np
import pytest

import pullback as torch


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (
            torch.float16,
            "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, "
            "smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)",
        ),
        (
            torch.bfloat16,
            "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, "
            "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)",
        ),
        (
            torch.complex64,
            "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
            "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)",
        ),
        (
            float,
            "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, "
            "smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)",
        ),
    ],
)
def test_finfo_prints_as_pytorch_prints_it(dtype, text):
    assert repr(torch.finfo(dtype)) == text
    assert str(torch.finfo(type=dtype)) == text


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo_agrees_with_numpy(name):
    info, expected = torch.finfo(getattr(torch, name)), np.finfo(name)
    for attribute in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        # NumPy's resolution is a rounded power of ten of the narrower type.
        assert getattr(info, attribute) == pytest.approx(
            float(getattr(expected, attribute)), rel=1e-3
        )
    assert info.dtype == name
    assert (info.eps, info.max) == (float(expected.eps), float(expected.max))


def test_the_numbers_of_bfloat16_follow_from_its_eight_bits_of_precision():
    info = torch.finfo(torch.bfloat16)
    assert (info.bits, info.eps, info.resolution) == (16, 2.0**-7, 0.01)
    assert info.max == -info.min == (2 - 2.0**-7) * 2.0**127
    assert info.tiny == info.smallest_normal == 2.0**-126


def test_finfo_without_argument_describes_the_default_dtype():
    assert torch.finfo() == torch.finfo(torch.get_default_dtype())


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (torch.uint8, "iinfo(min=0, max=255, dtype=uint8)"),
        (torch.int16, "iinfo(min=-32768, max=32767, dtype=int16)"),
        (int, "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"),
        (torch.uint64, "iinfo(min=0, max=1.84467e+19, dtype=uint64)"),
    ],
)
def test_iinfo_prints_as_pytorch_prints_it(dtype, text):
    assert repr(torch.iinfo(dtype)) == text


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_iinfo_is_exact(bits):
    signed = torch.iinfo(getattr(torch, f"int{bits}"))
    unsigned = torch.iinfo(getattr(torch, f"uint{bits}"))
    assert (signed.bits, signed.min, signed.max) == (bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert (unsigned.bits, unsigned.min, unsigned.max) == (bits, 0, 2**bits - 1)
    assert signed.dtype == f"int{bits}"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: torch.finfo(torch.int32),
            "torch.finfo() requires a floating point input type. "
            "Use torch.iinfo to handle 'torch.finfo'",
        ),
        (
            lambda: torch.iinfo(torch.complex64),
            "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'",
        ),
        (lambda: torch.iinfo(bool), "torch.bool is not supported by torch.iinfo"),
        (
            lambda: torch.finfo(None),
            "finfo(): argument 'type' (position 1) must be torch.dtype, not NoneType",
        ),
        (lambda: torch.iinfo(type=1), "iinfo(): argument 'type' must be torch.dtype, not int"),
        (lambda: torch.iinfo(), 'iinfo() missing 1 required positional arguments: "type"'),
        (lambda: torch.finfo(x=1), 'finfo() missing 1 required positional arguments: "type"'),
        (
            lambda: torch.finfo(torch.float16, 1),
            "finfo() received an invalid combination of arguments - got (torch.dtype, int), but "
            "expected one of:\n * (torch.dtype type)\n * ()\n",
        ),
        (
            lambda: torch.iinfo(torch.int8, 1),
            "iinfo() takes 1 positional argument but 2 were given",
        ),
        (
            lambda: torch.iinfo(torch.int8, type=torch.int8),
            "iinfo() got multiple values for argument 'type'",
        ),
        (
            lambda: torch.iinfo(torch.int8, x=1),
            "iinfo() got an unexpected keyword argument 'x'",
        ),
        (
            lambda: type("Mine", (torch.finfo,), {}),
            "type 'torch.finfo' is not an acceptable base type",
        ),
        (lambda: copy.copy(torch.finfo()), "cannot pickle 'torch.finfo' object"),
    ],
)
def test_wrong_calls_are_type_errors_with_pytorchs_text(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == text


def test_descriptions_are_equal_by_dtype_and_cannot_be_changed():
    info = torch.finfo(torch.float32)
    assert info == torch.finfo(torch.complex64)
    assert hash(info) == hash(torch.finfo(torch.complex64))
    assert info != torch.finfo(torch.float64)
    assert torch.iinfo(torch.int8) != info
    for name, text in (
        ("eps", "attribute 'eps' of 'torch.finfo' objects is not writable"),
        ("other", "'torch.finfo' object has no attribute 'other'"),
    ):
        with pytest.raises(AttributeError) as error:
            setattr(info, name, 1)
        assert str(error.value) == text
    with pytest.raises(AttributeError):
        del info.eps


def test_the_classes_are_known_by_their_public_names():
    assert str(torch.finfo) == "<class 'torch.finfo'>"
    assert isinstance(torch.iinfo(torch.int8), torch.iinfo)


def test_print_options_are_told_and_are_ones_own():
    defaults = torch.get_printoptions()
    assert defaults == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    assert isinstance(defaults["threshold"], int)
    defaults["precision"] = 1
    assert torch.get_printoptions()["precision"] == 4
    try:
        torch.set_printoptions(precision=2, threshold=math.inf, sci_mode=True)
        changed = torch.get_printoptions()
    finally:
        torch.set_printoptions(profile="default")
    assert (changed["precision"], changed["threshold"], changed["sci_mode"]) == (2, math.inf, True)
    assert torch.get_printoptions()["threshold"] == 1000
