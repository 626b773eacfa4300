"""Tensors from nothing, from data of Python and NumPy, and from files.

Expected numbers come from mathematics, from NumPy, and from what x86 makes of numbers that an
integer has no place for.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as torch

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
LARGEST = 2**64 - 1


def test_range_includes_its_end_and_warns_that_it_does() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.range(1, 4).dtype is torch.float32
        assert torch.range(5, 1, -2).tolist() == [5.0, 3.0, 1.0]
        assert torch.range(0, 1.9).tolist() == [0.0, 1.0]
        # Fractions go before the steps are counted.
        assert torch.range(0.5, 4.5, 1.5, dtype=torch.int32).tolist() == [0, 1, 2, 3, 4]
        tenths = torch.range(0.1, 0.95, 0.1)
        assert tenths.tolist() == [float(np.float32(0.1 + 0.1 * i)) for i in range(9)]
        matrix = torch.zeros(2, 3, dtype=torch.int64)
        assert torch.range(1, 6, out=matrix) is matrix
        assert matrix.tolist() == [[1, 2, 3], [4, 5, 6]]
        for start, end, step in [(0, -1, 1), (0, 4, 0), (0, float("inf"), 1), (0, 2j, 1)]:
            with pytest.raises(RuntimeError):
                torch.range(start, end, step)
        with pytest.raises(NotImplementedError, match="range_cpu"):
            torch.range(0, 3, dtype=torch.uint16)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "complex64"])
def test_numbers_without_a_place_convert_as_x86_does(name: str, source: str) -> None:
    numbers = [float("-inf"), float("inf"), float("nan"), 1e30, -1e30, -2.0, 3.75, 1.0, -1.5]
    dtype = getattr(torch, name)
    x = torch.tensor(numbers, dtype=getattr(torch, source))
    bits = 8 * dtype.itemsize
    # (The wide ones have a number that says so; the others keep its lower bits, which are zero.)
    lost = -(2 ** (bits - 1)) if name in ("int32", "int64") else 0
    if name == "uint64":
        expected = [2**63, 0, 2**63, 0, 2**63]
    else:
        expected = [lost] * 5
    whole = [-2, 3, 1, -1]
    expected += [n % 2**bits if name.startswith("u") else n for n in whole]
    for repeat in (1, 50):
        assert x.repeat_interleave(repeat).to(dtype)[::repeat].tolist() == expected


def test_integers_of_64_bits_without_sign_keep_their_value() -> None:
    u64 = torch.uint64
    x = torch.tensor([LARGEST, 3], dtype=u64)
    assert x.tolist() == [LARGEST, 3]
    assert x[0].item() == LARGEST
    assert int(x[0]) == LARGEST
    assert x[0].__index__() == LARGEST
    assert float(x[0]) == 2.0**64
    assert str(x[0]) == f"tensor({LARGEST}, dtype=torch.uint64)"
    assert torch.full((2,), 2**63, dtype=u64).tolist() == [2**63] * 2
    assert torch.zeros(1, dtype=u64).fill_(LARGEST).item() == LARGEST
    assert (x == LARGEST).tolist() == [True, False]
    assert x.clamp(max=2**63).tolist() == [2**63, 3]
    assert (torch.ones(1, dtype=torch.int64) * 2**63).tolist() == [-(2**63)]
    assert (torch.ones(1) * 2**63).tolist() == [2.0**63]
    assert torch.scalar_tensor(2**63).item() == 2.0**63
    assert torch.tensor(np.array([LARGEST], dtype=np.uint64)).tolist() == [LARGEST]
    for call, error in [
        (lambda: torch.full((1,), LARGEST), RuntimeError),
        (lambda: torch.tensor(-1, dtype=u64), OverflowError),
        (lambda: torch.tensor([-1, LARGEST], dtype=u64), OverflowError),
        (lambda: torch.ones(1) * 2**64, OverflowError),
        (lambda: torch.arange(2**63, 2**63 + 2), RuntimeError),
    ]:
        with pytest.raises(error):
            call()


def test_whole_numbers_of_more_than_64_bits_are_data_for_real_numbers_and_truth_values() -> None:
    assert torch.tensor(2**64, dtype=torch.float32).item() == 2.0**64
    assert torch.tensor([2**70, -(2**63) - 1], dtype=torch.float64).tolist() == [
        2.0**70,
        -(2.0**63),
    ]
    assert torch.tensor([2**70, 1.5]).dtype is torch.float32
    assert torch.tensor([2**70, 0, -(2**2000)], dtype=torch.bool).tolist() == [True, False, True]
    assert torch.tensor(2**63, dtype=torch.complex128).item() == 2.0**63
    for dtype in (None, torch.int64, torch.int32, torch.uint64):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.tensor([2**70], dtype=dtype)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor(2**63)
    with pytest.raises(OverflowError, match="too large to convert to float"):
        torch.tensor([2**2000], dtype=torch.float64)


def test_tensors_of_one_element_in_lists_are_numbers() -> None:
    one, three = torch.tensor([7]), torch.tensor([1, 2, 3])
    assert torch.tensor([[one, three[0]], [three[2], one]]).tolist() == [[7, 1], [3, 7]]
    assert torch.tensor([torch.ones(1, 1), 5]).tolist() == [1.0, 5.0]
    assert torch.tensor([[5], one]).tolist() == [[5], [7]]
    assert torch.tensor([one, one]).shape == (2,)


def test_arrays_and_scalars_of_numpy_in_lists_bring_their_dtype() -> None:
    assert torch.tensor(((7, np.array(5)), (np.array(9), 5.0))).dtype is torch.float32
    assert torch.tensor(((7, 5), (9, np.array(5.0)))).dtype is torch.float64
    assert torch.tensor([1, np.array(2)]).tolist() == [1, 2]
    both = torch.tensor([np.array([5, 6]), np.array([1.5, 2.0])])
    assert both.tolist() == [[5.0, 6.0], [1.5, 2.0]]
    assert both.dtype is torch.float64
    assert torch.tensor([np.array([1]), np.array([2])]).tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="expected sequence of length 1 at dim 1"):
        torch.tensor([1, np.array([2])])
    for kind in ("uint8", "int16", "float16", "float64", "complex64", "uint64", "bool"):
        assert torch.tensor([np.dtype(kind).type(1)]).dtype is getattr(torch, kind)
    # What no tensor can show is read number by number.
    backwards = np.arange(3)[::-1]
    assert torch.tensor([backwards, backwards]).tolist() == [[2, 1, 0]] * 2
    assert torch.tensor([np.array([1, 2.5], dtype=object)]).tolist() == [[1.0, 2.5]]


class Sequence:
    def __init__(self, items: list[Any], error: type[Exception] | None = None) -> None:
        self.items, self.error = items, error

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> Any:
        if self.error is not None:
            raise self.error("no items")
        return self.items[at]


def test_sequences_are_read_and_those_that_cannot_be_are_named() -> None:
    assert torch.tensor(Sequence([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert torch.tensor([Sequence([1]), Sequence([2])]).tolist() == [[1], [2]]
    for error in (TypeError, KeyError, ZeroDivisionError):
        with pytest.raises(ValueError, match="could not determine the shape of object type 'Seq"):
            torch.tensor(Sequence([1.0], error))


def test_asarray_without_a_copy_shows_memory_or_says_why_it_cannot() -> None:
    x, array = torch.ones(2), np.ones(2)
    assert torch.asarray(x, copy=False) is x
    assert torch.asarray(array, copy=False).data_ptr() == array.ctypes.data
    for data, dtype, error, phrase in [
        (x, torch.float64, ValueError, "with dtype 'Float' into dtype 'Double'"),
        (array, torch.float32, ValueError, "with dtype 'Double' into dtype 'Float'"),
        ([1.0], None, ValueError, "can't alias arbitrary sequence"),
        (1.0, None, ValueError, "can't alias arbitrary sequence"),
        (np.float64(0.5), None, RuntimeError, "can't alias NumPy scalars"),
    ]:
        with pytest.raises(error, match=phrase):
            torch.asarray(data, dtype=dtype, copy=False)
    assert torch.asarray(np.float64(0.5)).dtype is torch.float64
    assert torch.asarray(np.float64(0.5), copy=True).item() == 0.5


def test_asarray_keeps_history_unless_told_otherwise() -> None:
    leaf = torch.ones(2, requires_grad=True)
    result = leaf * 2
    assert torch.asarray(result) is result
    assert torch.asarray(result, requires_grad=True) is result
    assert torch.asarray(result, copy=True).grad_fn is not None
    assert torch.asarray(result, dtype=torch.float64).grad_fn is not None
    apart = torch.asarray(result, requires_grad=False)
    assert not apart.requires_grad
    assert apart.data_ptr() == result.data_ptr()
    plain = torch.ones(2)
    assert torch.asarray(plain, requires_grad=True) is plain
    assert plain.requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex"):
        torch.asarray([1], requires_grad=True)


def test_makers_of_random_integers_take_the_dtype_of_out() -> None:
    for call in [
        lambda **options: torch.randint(9, (5,), **options),
        lambda **options: torch.randint(2, 9, (5,), **options),
        lambda **options: torch.randperm(5, **options),
    ]:
        assert call().dtype is torch.int64
        torch.manual_seed(3)
        expected = call(dtype=torch.float32)
        torch.manual_seed(3)
        out = torch.empty(5)
        assert call(out=out) is out
        assert torch.equal(out, expected)
        with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
            call(out=out, dtype=torch.int64)


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_integers_are_drawn_from_the_stream_of_signed_ones(name: str) -> None:
    dtype = getattr(torch, name)

    def drawn(dtype: Any, *limits: int | None) -> Any:
        torch.manual_seed(5)
        return torch.empty(7, dtype=dtype).random_(*limits).tolist()

    for limits in [(100,), (5, 9), (0, 2**16)]:
        assert drawn(dtype, *limits) == drawn(torch.int64, *limits)
    most = 2 ** (8 * dtype.itemsize) - 1
    if name == "uint64":
        assert max(drawn(dtype, 0, None)) > 2**63
    else:
        assert drawn(dtype, 3, None) == drawn(torch.int64, 3, most + 1)
        with pytest.raises(RuntimeError, match=r"to - 1 is out of bounds for .*unsigned"):
            drawn(dtype, most + 2)
    with pytest.raises(RuntimeError, match=r"from is out of bounds for .*unsigned"):
        drawn(dtype, -1, 5)
    with pytest.raises(NotImplementedError, match="random_kernel_cpu"):
        drawn(dtype)


def test_real_dtypes_take_no_complex_bounds() -> None:
    for make in (torch.linspace, torch.logspace):
        name = make.__name__
        with pytest.raises(RuntimeError, match=rf"torch.{name}\(\): inferred dtype .* Float"):
            make(0, 1j, 3, dtype=torch.float32)
        assert make(0, 1j, 3).dtype is torch.complex64
        assert make(0, 1, 3, dtype=torch.complex128).dtype is torch.complex128


def test_sizes_beyond_memory_are_named() -> None:
    with pytest.raises(
        RuntimeError, match=r"Storage size calculation overflowed with sizes=\[2, 4"
    ):
        torch.empty([2, 4, 2**29, 2**29], dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty_strided([8, 8], [2**61, 1], dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        torch.empty([0, 4, 2**61])


def test_meshgrid_without_indexing_warns_once() -> None:
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="required to pass the indexing argument"):
            torch.meshgrid(torch.arange(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.meshgrid(torch.arange(2), indexing="ij")
            torch.cartesian_prod(torch.arange(2), torch.arange(3))
    finally:
        torch.set_warn_always(always)


@pytest.mark.parametrize("format", ["channels_last", "channels_last_3d"])
def test_channels_that_lie_together_do_so_once_joined(format: str) -> None:
    kind = getattr(torch, format)
    shape = (2, 3, 4, 5) if format == "channels_last" else (2, 3, 4, 5, 2)
    x, y = (torch.arange(i, i + torch.empty(shape).numel()).view(shape).float() for i in (0, 7))
    near, far = (t.contiguous(memory_format=kind) for t in (x, y))
    for dim in range(-1, len(shape)):
        expected, joined = torch.cat([x, y], dim), torch.cat([near, far], dim)
        assert torch.equal(joined, expected)
        assert joined.is_contiguous(memory_format=kind)
        assert torch.cat([near, y], dim).is_contiguous()
    # Parts of such tensors lie as they do.
    assert torch.cat([near[:, :, :2], near[:, :, 1:]], 2).is_contiguous(memory_format=kind)
    leaf = near.clone().requires_grad_()
    torch.cat([leaf, leaf * 2], 1).sum().backward()
    assert torch.equal(leaf.grad, torch.full(shape, 3.0))
    single = torch.ones(2, 1, 1, 1)
    assert torch.cat([single, single], 1).stride() == (2, 1, 1, 1)


def test_vectors_of_nothing_join_along_any_dimension() -> None:
    nothing = torch.empty(0, requires_grad=True)
    joined = torch.cat([nothing, nothing], 3)
    assert joined.shape == (0,)
    joined.sum().backward()
    assert nothing.grad.shape == (0,)


def test_a_file_can_be_the_memory_of_a_tensor(tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    shared = torch.from_file(path, shared=True, size=3)
    assert shared.tolist() == [0.0, 0.0, 0.0]
    assert os.path.getsize(path) == 12
    shared.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert np.fromfile(path, dtype=np.float32).tolist() == [1.0, 2.0, 3.0]
    storage = shared.untyped_storage()
    assert storage.filename == path
    assert storage.is_shared()
    assert not storage.resizable()
    private = torch.from_file(path, size=2, requires_grad=True)
    assert private.requires_grad
    private.detach().fill_(9.0)
    assert private.tolist() == [9.0, 9.0]
    assert shared.tolist() == [1.0, 2.0, 3.0]
    assert private.untyped_storage().filename is None
    assert torch.from_file(path, True, 4).tolist() == [1.0, 2.0, 3.0, 0.0]
    assert torch.from_file(path, dtype=torch.int16).shape == (0,)
    assert torch.UntypedStorage.from_file(path, True, 5).nbytes() == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.FloatStorage.from_file(path, False, 2).tolist() == [1.0, 2.0]
    del shared, storage
    fresh = torch.empty(3)
    assert fresh.untyped_storage().filename is None


def test_files_that_cannot_be_memory_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    for call, phrase in [
        (lambda: torch.from_file(path, size=3), "unable to open file .* in read-only mode"),
        (lambda: torch.from_file(str(tmp_path), True, 3), "in read-write mode: Is a directory"),
        (lambda: torch.from_file(path, True, -1), "unable to mmap -4 bytes"),
        (lambda: torch.from_file(path, True, 2**62), "unable to mmap"),
        (lambda: torch.from_file(path, True, 3, device="cuda"), "cuda"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            call()
    torch.from_file(path, True, 3)
    with pytest.raises(RuntimeError, match="size <12> is smaller than the required mapping size"):
        torch.from_file(path, False, 4)
    for args in [(3,), (path, "yes"), (path, True, 1.5)]:
        with pytest.raises(TypeError, match=r"from_file\(\): argument"):
            torch.from_file(*args)


def test_a_target_of_another_length_is_filled_after_a_warning() -> None:
    out = torch.zeros(1, 49)
    with pytest.warns(UserWarning, match="The out tensor will be resized to a tensor of shape"):
        torch.arange(50, out=out)
    assert out.tolist() == list(range(50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.arange(3, out=torch.empty(0)).tolist() == [0.0, 1.0, 2.0]


def test_complex_results_need_complex_targets() -> None:
    x = torch.ones(2)
    for make in (torch.complex, torch.polar):
        for out, name in [
            (torch.zeros(2), "float"),
            (torch.zeros(2, dtype=torch.int64), "long int"),
        ]:
            with pytest.raises(
                RuntimeError,
                match=f"to have dtype c10::complex<float>, but got {name} instead",
            ):
                make(x, x, out=out)
