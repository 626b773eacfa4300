"""Memory shared with NumPy and DLPack, buffers, pickles and copies."""

from __future__ import annotations

import copy
import ctypes
import io
import pickle
from typing import Any

import numpy as np
import pytest

import pullback as torch

PAIRS = [
    (torch.float32, np.float32),
    (torch.float64, np.float64),
    (torch.float16, np.float16),
    (torch.int8, np.int8),
    (torch.int16, np.int16),
    (torch.int32, np.int32),
    (torch.int64, np.int64),
    (torch.uint8, np.uint8),
    (torch.bool, np.bool_),
    (torch.complex64, np.complex64),
    (torch.complex128, np.complex128),
]


@pytest.mark.parametrize(("dtype", "kind"), PAIRS, ids=lambda p: str(p))
def test_dtypes_go_both_ways(dtype: Any, kind: Any) -> None:
    tensor = torch.tensor([0, 1, 1]).to(dtype)
    array = tensor.numpy()
    assert array.dtype == kind
    back = torch.from_numpy(array)
    assert back.dtype == dtype
    assert back.data_ptr() == tensor.data_ptr()
    assert torch.equal(back, tensor)


def test_numpy_shares_memory() -> None:
    tensor = torch.zeros(2, 3)
    array = tensor.numpy()
    array[1, 2] = 5
    assert tensor[1, 2].item() == 5
    tensor[0, 0] = 7
    assert array[0, 0] == 7
    other = torch.from_numpy(array)
    other.add_(1)
    assert tensor.tolist() == [[8, 1, 1], [1, 1, 6]]


def test_memory_outlives_either_side() -> None:
    array = torch.arange(5).numpy()
    assert array.tolist() == [0, 1, 2, 3, 4]
    tensor = torch.from_numpy(np.arange(5))
    assert tensor.tolist() == [0, 1, 2, 3, 4]


def test_strides_go_both_ways() -> None:
    tensor = torch.arange(12).reshape(3, 4).t()[1:, ::2]
    array = tensor.numpy()
    assert array.tolist() == tensor.tolist()
    assert [s // 8 for s in array.strides] == list(tensor.stride())
    assert torch.from_numpy(array).stride() == tensor.stride()
    assert torch.zeros(0, 3).numpy().shape == (0, 3)
    assert torch.tensor(3.0).numpy().shape == ()
    assert torch.from_numpy(np.zeros((2, 0))).shape == (2, 0)


def test_numpy_of_recorded_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1]


def test_bfloat16_has_no_numpy() -> None:
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()


def test_from_numpy_refuses() -> None:
    with pytest.raises(TypeError):
        torch.from_numpy([1, 2])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError):
        torch.from_numpy(np.array([object()]))
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(4)[::-1])
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(np.arange(4).astype(">i8"))


def test_read_only_arrays_warn() -> None:
    array = np.zeros(2)
    array.flags.writeable = False
    torch.set_warn_always(True)  # Else once in a process.
    try:
        with pytest.warns(UserWarning, match="not writable"):
            torch.from_numpy(array)
    finally:
        torch.set_warn_always(False)


def test_tensor_copies_and_asarray_shares() -> None:
    array = np.arange(3.0)
    copied = torch.tensor(array)
    shared = torch.as_tensor(array)
    array[0] = 9
    assert copied.tolist() == [0, 1, 2]
    assert shared.tolist() == [9, 1, 2]
    assert torch.asarray(array, copy=True).data_ptr() != shared.data_ptr()
    assert torch.as_tensor(array, dtype=torch.float32).dtype == torch.float32


def test_numpy_takes_tensors() -> None:
    x = torch.arange(4.0)
    assert np.asarray(x).tolist() == [0, 1, 2, 3]
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    assert np.sum(np.asarray(x)) == 6
    assert isinstance(np.sin(x), torch.Tensor)
    assert torch.tensor(np.float32(2.5)).item() == 2.5
    assert (x + np.float64(1)).tolist() == [1, 2, 3, 4]
    assert x[np.int64(2)].item() == 2
    assert x[np.array([0, 3])].tolist() == [0, 3]


# --- DLPack --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "kind"), PAIRS, ids=lambda p: str(p))
def test_dlpack_shares_memory(dtype: Any, kind: Any) -> None:
    tensor = torch.tensor([0, 1, 1]).to(dtype)
    back = torch.from_dlpack(tensor)
    assert back.dtype == dtype
    assert back.data_ptr() == tensor.data_ptr()
    array = np.from_dlpack(tensor)
    assert array.dtype == kind
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    given = torch.from_dlpack(np.array([0, 1, 1], dtype=kind))
    assert given.dtype == dtype
    assert torch.equal(given, tensor)


def test_dlpack_keeps_strides() -> None:
    x = torch.arange(12.0).reshape(3, 4).t()[::2]
    y = torch.from_dlpack(x)
    assert y.stride() == x.stride()
    assert torch.equal(x, y)
    assert torch.from_dlpack(torch.zeros(0, 2)).shape == (0, 2)


def test_a_capsule_is_used_once() -> None:
    x = torch.arange(3.0)
    capsule = x.__dlpack__()
    assert x.__dlpack_device__() == (1, 0)
    y = torch.from_dlpack(capsule)
    y[0] = 5
    assert x[0].item() == 5
    with pytest.raises((RuntimeError, ValueError)):
        torch.from_dlpack(capsule)
    del x
    assert y.tolist() == [5, 1, 2]


def test_dlpack_refuses() -> None:
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(TypeError, match="stream must be"):
        torch.ones(1).__dlpack__(stream="x")
    with pytest.raises(BufferError):
        torch.ones(1).__dlpack__(dl_device=(2, 0))
    for wrong in (3, None, [1.0], "x"):
        with pytest.raises((AttributeError, TypeError, RuntimeError)):
            torch.from_dlpack(wrong)


def test_dropped_capsules_free_their_memory() -> None:
    before = torch.memory.live_bytes()
    x = torch.zeros(1000)
    for _ in range(100):
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 0))
    del x
    assert torch.memory.live_bytes() == before


# --- buffers -------------------------------------------------------------------------------------


def test_frombuffer() -> None:
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    x = torch.frombuffer(data, dtype=torch.int32)
    assert x.tolist() == [0, 1, 2, 3]
    x[0] = 9
    assert data[0] == 9
    assert torch.frombuffer(data, dtype=torch.int32, count=2, offset=4).tolist() == [1, 2]
    with pytest.raises(ValueError, match="offset"):
        torch.frombuffer(data, dtype=torch.int32, offset=16)
    with pytest.raises(ValueError, match="both buffer length"):
        torch.frombuffer(bytearray(), dtype=torch.int32)
    with pytest.raises(ValueError, match="multiple"):
        torch.frombuffer(bytearray(5), dtype=torch.int32)


# --- copies --------------------------------------------------------------------------------------


def round_trip(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize(
    "dtype", [p[0] for p in PAIRS] + [torch.bfloat16, torch.uint16, torch.uint32, torch.uint64]
)
def test_pickles(dtype: Any) -> None:
    x = torch.tensor([[0, 1], [1, 0]]).to(dtype).t()
    y = round_trip(x)
    assert (y.dtype, y.shape, y.stride()) == (x.dtype, x.shape, x.stride())
    assert y.tolist() == x.tolist()
    assert round_trip(dtype) is dtype


def test_pickles_keep_state() -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = {"a": 1}
    y = round_trip(x)
    assert y.requires_grad
    assert y.note == {"a": 1}
    assert type(round_trip(torch.nn.Parameter(torch.ones(2)))) is torch.nn.Parameter
    assert round_trip(torch.Size([2, 3])) == torch.Size([2, 3])
    assert round_trip(torch.device("cpu")) == torch.device("cpu")
    stream = io.BytesIO()
    pickle.dump([x, torch.empty(0, 2), torch.tensor(3)], stream, protocol=5)
    stream.seek(0)
    a, b, c = pickle.load(stream)
    assert (a.tolist(), b.shape, c.item()) == ([1, 1], (0, 2), 3)


def test_deepcopy() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == [2, 2, 2]
    assert y.grad is not x.grad
    base = torch.arange(4)
    pair = copy.deepcopy([base, base[1:], base])
    assert pair[0] is pair[2]
    pair[0][1] = 50
    assert pair[1][0].item() == 50
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_copy_shares() -> None:
    x = torch.ones(2)
    y = copy.copy(x)
    y[0] = 5
    assert x.tolist() == [5, 1]


def test_arrays_of_any_layout_are_shared_both_ways() -> None:
    block = np.arange(24.0).reshape(2, 3, 4)
    for array in (block, block.T, block[1], block[:, ::2, 1:3], block[0, 0, 0:0], np.array(3.0)):
        tensor = torch.from_numpy(array)
        assert tuple(tensor.shape) == array.shape
        assert tensor.numpy().tolist() == array.tolist()
        assert tensor.numpy().strides == array.strides
    view = torch.from_numpy(block)[1, :, ::2]
    view.zero_()
    assert block.sum() == block[0].sum() + block[1, :, 1::2].sum()
    assert view.numpy().shape == (3, 2)
    assert np.shares_memory(view.numpy(), block)


def test_memory_outlives_whichever_side_goes_first() -> None:
    array = torch.arange(1000).numpy()
    assert isinstance(array.base, torch.Tensor)
    assert array.sum() == 499500
    tensor = torch.from_numpy(np.arange(1000))
    assert tensor.sum().item() == 499500
    owner = torch.zeros(3)
    before = owner.numpy()
    owner.data = torch.ones(3)
    assert before.tolist() == [0, 0, 0]


def test_numbers_of_c_that_have_one_size_have_one_dtype() -> None:
    for name in ("intc", "long", "longlong", "uintc", "ulong", "ulonglong"):
        array = np.array([1, 2], dtype=name)
        tensor = torch.from_numpy(array)
        assert tensor.itemsize == array.itemsize
        assert tensor.numpy().dtype == array.dtype.newbyteorder("=").str


def test_subclasses_and_odd_arrays_keep_their_errors() -> None:
    assert torch.from_numpy(np.ma.masked_array([1.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3.0)[::-1])
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(np.arange(3, dtype=np.dtype("i4").newbyteorder()))
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.object_"):
        torch.from_numpy(np.array([None]))
    unaligned = np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.float64)
    with pytest.raises(ValueError, match="not aligned"):
        torch.from_numpy(unaligned)
    with pytest.raises(ValueError, match="multiple of the element byte size"):
        torch.from_numpy(np.zeros(4, dtype="i4,i2")["f0"])


def test_asarray_shows_the_memory_of_buffers_and_capsules() -> None:
    import array

    numbers = array.array("f", [1.0, 2.0, 3.0])
    shown = torch.asarray(numbers)
    assert shown.tolist() == [1.0, 2.0, 3.0]
    shown[0] = 9.0
    assert numbers[0] == 9.0
    assert torch.asarray(memoryview(numbers), dtype=torch.int32, copy=True).shape == (3,)
    single = memoryview(bytearray(8)).cast("B", (8,)).cast("B").cast("q", ())
    assert torch.asarray(single, dtype=torch.int64).tolist() == [0]
    x = torch.arange(3.0)
    same = torch.asarray(x.__dlpack__())
    assert same.data_ptr() == x.data_ptr()
    assert torch.asarray(x.__dlpack__(), dtype=torch.float64).dtype is torch.float64


class Described(ctypes.Structure):
    """A DLPack tensor without an owner to be told of its end."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def described(shape, ndim, data=True):
    """A capsule, and what it shows, which must live as long."""
    numbers = (ctypes.c_float * 6)(*range(6))
    sizes = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
    tensor = Described(
        data=ctypes.addressof(numbers) if data else None,
        device=(ctypes.c_int32 * 2)(1, 0),
        ndim=ndim,
        code=2,
        bits=32,
        lanes=1,
        shape=sizes,
    )
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return make(ctypes.addressof(tensor), b"dltensor", None), (tensor, numbers, sizes)


def test_a_dlpack_tensor_that_cannot_be_is_refused():
    capsule, _alive = described([2, 3], 2)
    shown = torch.from_dlpack(capsule)
    assert shown.tolist() == [[0, 1, 2], [3, 4, 5]]
    del shown
    for shape, ndim, data, words in [
        (None, 2, True, "without sizes"),
        ([2, 3], -1, True, "-1 dimensions"),
        ([2, 3], 2, False, "without memory"),
        ([2, -3], 2, True, "negative"),
    ]:
        capsule, _alive = described(shape, ndim, data)
        with pytest.raises((BufferError, RuntimeError), match=words):
            torch.from_dlpack(capsule)


def test_read_only_memory_is_exported_as_such() -> None:
    from pullback.utils.dlpack import ReadOnlyTensorWrapper, to_dlpack

    x = torch.arange(4.0)
    wrapper = ReadOnlyTensorWrapper(x)
    assert isinstance(wrapper, torch.Tensor)
    array = np.from_dlpack(wrapper)
    assert not array.flags.writeable
    assert np.from_dlpack(x).flags.writeable
    x[0] = 5
    assert array[0] == 5
    with pytest.warns(UserWarning, match="read-only"):
        shown = torch.from_dlpack(to_dlpack(wrapper))
    assert shown.data_ptr() == x.data_ptr()
    assert wrapper.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="requires the versioned DLPack protocol"):
        wrapper.__dlpack__(max_version=(0, 8))
    with pytest.raises(BufferError, match="requires the versioned DLPack protocol"):
        x.__dlpack__(read_only=True)
    with pytest.raises(BufferError, match="require gradient"):
        ReadOnlyTensorWrapper(torch.ones(2, requires_grad=True)).__dlpack__()


def test_what_is_read_only_can_be_nothing_but_exported() -> None:
    from pullback.utils.dlpack import ReadOnlyTensorWrapper

    wrapper: Any = ReadOnlyTensorWrapper(torch.ones(2))
    uses: list[Any] = [
        lambda: wrapper + 1,
        lambda: wrapper.shape,
        lambda: wrapper[0],
        lambda: wrapper.numpy(),
        lambda: wrapper.detach(),
        lambda: wrapper.data_ptr(),
        lambda: torch.add(wrapper, 1),
        lambda: wrapper.__setitem__(0, 1),
        lambda: repr(wrapper),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="only supports DLPack export"):
            use()
    with pytest.raises(TypeError, match="expected a Tensor, but got int"):
        ReadOnlyTensorWrapper(3)  # type: ignore[arg-type]


def test_a_lazy_clone_that_is_exported_to_be_read_stays_one() -> None:
    from pullback import _C
    from pullback.utils.dlpack import ReadOnlyTensorWrapper

    for size in (4, 1000):
        x = torch.arange(float(size))
        clone = x._lazy_clone()
        array = np.from_dlpack(ReadOnlyTensorWrapper(clone))
        assert _C._is_cow_tensor(clone)
        assert array.ctypes.data == _C._data_address(x)
        # Whoever writes now writes elsewhere.
        clone.zero_()
        x.fill_(2)
        assert array.tolist() == list(range(size))
