"""Storages as objects: bytes, typed elements, the older classes, and tensors over them."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import storage as storage_module


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        yield


def test_an_untyped_storage_is_made_of_a_size_or_of_bytes() -> None:
    assert len(torch.UntypedStorage()) == 0
    assert torch.UntypedStorage(5).nbytes() == 5
    assert torch.UntypedStorage([1, 2, 300]).tolist() == [1, 2, 44]
    with pytest.raises(RuntimeError, match="Expected a sequence type, but got float"):
        torch.UntypedStorage(1.5)
    with pytest.raises(RuntimeError, match="one of the items was of type str instead of int"):
        torch.UntypedStorage(["a"])
    with pytest.raises(RuntimeError, match="negative number"):
        torch.UntypedStorage(-1)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.UntypedStorage(1, 2)
    with pytest.raises(RuntimeError, match="not available"):
        torch.UntypedStorage(1, device="cuda")


def test_bytes_are_read_and_written_by_index_and_slice() -> None:
    storage = torch.UntypedStorage([1, 2, 3, 4])
    assert (storage[0], storage[-1], list(storage), 3 in storage) == (1, 4, [1, 2, 3, 4], True)
    storage[1] = -1
    storage[2:] = 9
    assert storage.tolist() == [1, 255, 9, 9]
    with pytest.raises(IndexError, match="index 4 out of range for storage of size 4"):
        storage[4]
    with pytest.raises(RuntimeError, match="step of 2, but only a step of 1"):
        storage[::2]
    with pytest.raises(TypeError, match=r"can't index a torch\.UntypedStorage with str"):
        storage["a"]
    with pytest.raises(RuntimeError, match="can only set storage content with a int types"):
        storage[0] = 1.5
    with pytest.raises(RuntimeError, match="out of bounds"):
        storage[4] = 1
    assert storage.fill_(7).tolist() == [7, 7, 7, 7]


def test_a_slice_shares_the_bytes_and_keeps_them_alive() -> None:
    storage = torch.UntypedStorage([1, 2, 3, 4])
    part = storage[1:3]
    part[0] = 20
    assert storage.tolist() == [1, 20, 3, 4]
    storage.resize_(4000)
    del storage
    assert part.tolist() == [20, 3]


def test_a_storage_shrinks_and_grows_under_its_tensors() -> None:
    x = torch.arange(4)
    storage = x.untyped_storage()
    assert storage.resize_(0) is storage
    assert (storage.nbytes(), storage.data_ptr(), x.shape) == (0, 0, (4,))
    # The tensor reaches beyond the end; its memory is still its own.
    assert (x + 1).tolist() == [1, 2, 3, 4]
    storage.resize_(32)
    assert x.fill_(2).tolist() == [2, 2, 2, 2]
    storage.resize_(80_000)
    assert x.tolist() == [2, 2, 2, 2]
    with pytest.raises(RuntimeError, match="resize_ expects an int, but got str"):
        storage.resize_("a")  # type: ignore[arg-type]


def test_memory_of_somebody_else_is_not_resized() -> None:
    x = torch.frombuffer(bytearray(8), dtype=torch.uint8)
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(4)


def test_copies_of_a_storage_are_apart_and_one_deep_copy_keeps_sharing() -> None:
    storage = torch.UntypedStorage([1, 2])
    for other in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        other[0] = 9
        assert storage[0] == 1
    first, second = copy.deepcopy([storage, storage])
    assert first is second
    first, second = pickle.loads(pickle.dumps([storage, storage]))
    assert first is second
    assert first.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="size does not match, self was 2 bytes"):
        storage.copy_(torch.UntypedStorage(3))
    assert storage.copy_(torch.UntypedStorage([5, 6])).tolist() == [5, 6]


def test_a_buffer_is_read_in_either_byte_order() -> None:
    read = torch.UntypedStorage.from_buffer
    assert read(b"abcd", "little", dtype=torch.int16).tolist() == [97, 98, 99, 100]
    assert read(b"abcd", "big", dtype=torch.int16).tolist() == [98, 97, 100, 99]
    assert read(b"abcd", "native", 1, 2, torch.int16).tolist() == [99, 100]
    assert read(b"\0\2", "native", dtype=torch.bool).tolist() == [0, 1]
    for arguments, error in [
        ((b"ab",), RuntimeError),
        ((b"abc", "native", -1, 0, torch.int16), ValueError),
        ((b"ab", "odd", -1, 0, torch.int16), ValueError),
        ((b"ab", "native", 2, 0, torch.int16), ValueError),
        ((b"ab", "native", -1, 3, torch.int16), ValueError),
        ((b"ab", None, -1, 0, torch.int16), RuntimeError),
        ((5, "native", -1, 0, torch.int16), TypeError),
    ]:
        with pytest.raises(error):
            read(*arguments)
    swapped = torch.UntypedStorage([1, 2, 3, 4])
    swapped.byteswap(torch.int16)
    assert swapped.tolist() == [2, 1, 4, 3]


def test_a_tensors_storage_has_its_dtype_and_its_memory() -> None:
    x = torch.arange(4.0)
    storage = x[1:].storage()
    assert isinstance(storage, torch.TypedStorage)
    assert torch.is_storage(storage)
    assert isinstance(storage, torch.FloatStorage)
    assert not isinstance(storage, torch.DoubleStorage)
    assert (len(storage), storage.nbytes(), storage.dtype) == (4, 16, torch.float32)
    storage[0] = 5
    storage[1:3] = 7
    assert x.tolist() == [5.0, 7.0, 7.0, 3.0]
    assert storage.double().tolist() == [5.0, 7.0, 7.0, 3.0]
    assert storage.untyped() is x.untyped_storage()
    assert x.storage_type() is torch.FloatStorage
    assert storage.type() == "torch.FloatStorage"
    assert pickle.loads(pickle.dumps(storage)).tolist() == storage.tolist()
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        storage[0:1]
    with pytest.raises(IndexError, match="index 4 out of range"):
        storage[4]


def test_typed_storages_warn_once() -> None:
    storage_module._reset_warn_typed_storage_removal()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        storage = torch.ones(2).storage()
        storage.size()
    assert [str(w.message)[:29] for w in seen] == ["TypedStorage is deprecated. I"]
    assert seen[0].filename == __file__


def test_typed_storages_are_made_of_sizes_elements_and_storages() -> None:
    assert torch.TypedStorage([1, 2], dtype=torch.float64).tolist() == [1.0, 2.0]
    assert torch.TypedStorage(3, dtype=torch.int16).nbytes() == 6
    assert torch.FloatStorage().size() == 0
    assert torch.BoolStorage([1, 0]).tolist() == [True, False]
    zeros = torch.UntypedStorage(8).fill_(0)
    assert torch.FloatStorage(wrap_storage=zeros).tolist() == [0.0, 0.0]
    for make in (
        lambda: torch.FloatStorage(1, 2),
        lambda: torch.FloatStorage(dtype=torch.float32),
        lambda: torch.TypedStorage(wrap_storage=zeros),
        lambda: torch.TypedStorage(1, wrap_storage=zeros, dtype=torch.float32),
    ):
        with pytest.raises(RuntimeError, match="invalid combination of arguments"):
            make()
    with pytest.raises(TypeError, match="must be UntypedStorage"):
        torch.TypedStorage(wrap_storage=5, dtype=torch.float32)
    with pytest.raises(RuntimeError, match="only cpu"):
        torch.cuda.FloatStorage([1])  # type: ignore[attr-defined]


def test_set_shows_a_storage_and_grows_one_that_is_too_small() -> None:
    x = torch.tensor([])
    storage = torch.FloatStorage([1, 2, 3, 4])
    assert x.set_(storage, 1, (2,)).tolist() == [2.0, 3.0]
    assert x.set_(storage, 0, (2, 2), (1, 2)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    x.set_(storage, 3, (2,), (1,))
    assert x.untyped_storage().nbytes() == 20
    for arguments, match in [
        ((storage, -1, (2,), (1,)), "invalid storage offset -1"),
        ((storage, 0, (2,), (-1,)), "must not be negative"),
        ((storage, 0, (2,), (1, 1)), "unequal size length"),
        ((torch.DoubleStorage([1.0]),), "got type Double for argument 1 'storage'"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            x.set_(*arguments)
    assert x[0].item() == 4.0


def test_a_storage_object_lives_as_long_as_tensors_show_its_memory() -> None:
    tensor = torch.zeros(3)
    storage: Any = tensor.untyped_storage()
    storage.note = [1]
    ref, place = weakref.ref(storage), id(storage)
    del storage
    gc.collect()
    again: Any = ref()
    assert again is not None
    assert id(again) == place
    assert again.note == [1]
    assert tensor.untyped_storage() is again
    # Used through the weak reference alone, it outlives the tensor.
    del tensor
    assert again.tolist() == [0] * 12
    assert torch.zeros(0).set_(again).untyped_storage() is again
    del again
    assert ref() is None


def test_a_storage_keeps_the_class_that_it_was_made_by() -> None:
    class Mixin:
        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            cls.is_known = True  # type: ignore[attr-defined]

    class Named(torch.UntypedStorage, Mixin):
        __slots__ = ("name",)
        name: str

    assert Named.is_known  # type: ignore[attr-defined]
    storage: Any = Named([1, 2, 3, 4])
    storage.name = "mine"
    storage.extra = "too"
    tensor = torch.zeros(0, dtype=torch.int32).set_(storage)
    del storage
    gc.collect()
    again: Any = tensor.untyped_storage()
    assert type(again) is Named
    assert again.name == "mine"
    assert again.extra == "too"
    ref = weakref.ref(again)
    for _ in range(3):
        del again
        gc.collect()
        again = tensor[:0].untyped_storage()
        assert ref() is again
    del tensor
    assert again.tolist() == [1, 2, 3, 4]
    del again
    assert ref() is None


def test_a_storage_without_state_is_not_kept() -> None:
    tensor = torch.zeros(3)
    tensor.untyped_storage()
    before = sum(type(o) is torch.UntypedStorage for o in gc.get_objects())
    for _ in range(10):
        torch.zeros(2).untyped_storage()
    assert sum(type(o) is torch.UntypedStorage for o in gc.get_objects()) == before


def test_a_storage_that_holds_itself_is_collected() -> None:
    storage: Any = torch.UntypedStorage(8)
    storage.me = storage
    ref = weakref.ref(storage)
    del storage
    gc.collect()
    assert ref() is None


def test_the_end_of_a_kept_storage_runs_its_finalizer_once() -> None:
    ends: list[str] = []

    class Loud(torch.UntypedStorage):
        def __del__(self) -> None:
            ends.append("end")

    storage: Any = Loud(4)
    tensor = torch.zeros(0).set_(storage)
    del storage
    assert ends == []
    assert type(tensor.untyped_storage()) is Loud
    assert ends == []
    del tensor
    assert ends == ["end"]


def test_threads_may_let_go_of_a_kept_storage() -> None:
    for _ in range(200):
        tensor = torch.zeros(2000)
        storage: Any = tensor.untyped_storage()
        storage.note = 1
        ref = weakref.ref(storage)
        parts = [tensor[i:] for i in range(4)]
        del storage, tensor

        def drop(part: list[Any]) -> None:
            part[0].sum()
            part.clear()

        threads = [threading.Thread(target=drop, args=([part],)) for part in parts]
        parts.clear()
        for thread in threads:
            thread.start()
        seen = ref()
        assert seen is None or seen.nbytes() == 8000
        for thread in threads:
            thread.join()
        del threads, thread, seen
        assert ref() is None


def test_constructors_read_a_storage_as_elements_of_their_dtype() -> None:
    x = torch.arange(4.0)
    untyped = x.untyped_storage()
    for made in (torch.tensor(untyped, dtype=torch.float32), x.new_tensor(untyped)):
        assert made.tolist() == x.tolist()
        assert made.data_ptr() != x.data_ptr()
    assert torch.tensor(untyped, dtype=torch.int32).tolist() == x.view(torch.int32).tolist()
    # What does not fill an element is left out; without a dtype the bytes are whole numbers.
    assert torch.tensor(untyped[:6], dtype=torch.float32).tolist() == [0.0]
    assert torch.tensor(untyped).tolist() == x.view(torch.int64).tolist()
    shown = torch.as_tensor(untyped, dtype=torch.float32)
    assert shown.data_ptr() == x.data_ptr()
    assert torch.tensor(x.storage()).tolist() == x.tolist()
    with pytest.raises(
        RuntimeError, match=r"Expected a Storage of type Double .* but got type Float"
    ):
        torch.tensor(x.storage(), dtype=torch.float64)
    with pytest.raises(
        RuntimeError, match=r"Expected a Storage of type Float .* but got type Long"
    ):
        torch.tensor(torch.arange(3).storage())


def test_classes_of_storages_are_found_by_dtype_and_by_name() -> None:
    names = storage_module._dtype_to_storage_type_map()
    dtypes = storage_module._storage_type_to_dtype_map()
    assert names[torch.complex64] == "ComplexFloatStorage"
    assert all(dtypes[name] is dtype for dtype, name in names.items())
    assert torch.Storage is torch.FloatStorage


def test_the_dtype_of_a_deprecated_class_warns() -> None:
    torch.storage._set_always_warn_typed_storage_removal(True)
    try:
        with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
            assert torch.HalfStorage.dtype is torch.float16
    finally:
        torch.storage._set_always_warn_typed_storage_removal(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not isinstance(torch.ones(2).untyped_storage(), torch.HalfStorage)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_bytes_are_written_behind_their_number() -> None:
    file, storage = io.BytesIO(), torch.tensor([1, 2, 3], dtype=torch.int16).storage()
    storage._write_file(file, False, True, 2)
    storage._write_file(file, False, False, 2)
    elements = b"\1\0\2\0\3\0"
    assert file.getvalue() == (3).to_bytes(8, "little") + elements + elements
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        torch.empty(2, device="meta").storage()._write_file(file, False, True, 4)
