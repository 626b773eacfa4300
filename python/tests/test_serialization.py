"""Checkpoints: what is written comes back, and what PyTorch wrote is read."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import warnings
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).with_name("recorded") / "checkpoints"
BOTH = pytest.mark.parametrize("weights_only", [True, False])
FORMATS = pytest.mark.parametrize("zipped", [True, False])


def written(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def again(value: Any, *, zipped: bool = True, **options: Any) -> Any:
    data = written(value, _use_new_zipfile_serialization=zipped)
    return torch.load(io.BytesIO(data), **options)


class Kept:
    """A class that files of weights may not name by themselves."""

    def __init__(self, number: int) -> None:
        self.number = number


class Marked(torch.Tensor):
    pass


# --- files of PyTorch -----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", ["plain", "plain_legacy"])
def test_what_pytorch_wrote_is_read(name: str, weights_only: bool) -> None:
    found = torch.load(RECORDED / f"{name}.pt", weights_only=weights_only)
    for dtype, tensor in found["tensors"].items():
        if dtype != "conj":
            assert str(tensor.dtype) == f"torch.{dtype}"
    assert found["tensors"]["bfloat16"].tolist() == [0.0, 1.0, 2.0]
    assert found["tensors"]["bool"].tolist() == [True, False]
    assert found["tensors"]["complex128"].tolist() == [3 - 4j]
    assert found["tensors"]["conj"].is_conj()
    assert found["tensors"]["conj"].tolist() == [1 - 2j]
    base = found["base"]
    assert found["row"].tolist() == [3.0, 4.0, 5.0]
    assert found["column"].stride() == (3,)
    base[1] = 77
    assert found["column"].tolist() == [77.0, 4.0]
    assert found["storage"].dtype is torch.float32
    assert found["storage"]._untyped_storage.data_ptr() == base.data_ptr()
    assert found["empty"].shape == (0, 4)
    assert found["scalar"].item() == 7
    assert found["leaf"].requires_grad
    assert isinstance(found["parameter"], torch.nn.Parameter)
    assert found["marked"].note == "kept"
    assert found["ordered"] == OrderedDict([("b", 1), ("a", 2)])
    data = [None, True, -1, 2**70, 1.5, 1j, "tëxt", b"\x00\xff", (1, (2,)), {3}]
    assert found["data"] == data
    of_torch = [torch.float32, torch.Size([2, 3]), torch.device("cuda", 1), torch.strided]
    assert found["of torch"] == of_torch


@BOTH
def test_dtypes_without_a_class_of_storages_are_read(weights_only: bool) -> None:
    found = torch.load(RECORDED / "unsigned.pt", weights_only=weights_only)
    assert found["uint16"].dtype is torch.uint16
    assert found["uint64"].tolist() == [1, 2]


@BOTH
@pytest.mark.parametrize("name", ["sparse", "sparse_legacy"])
def test_sparse_tensors_of_pytorch_are_read(name: str, weights_only: bool) -> None:
    found = torch.load(RECORDED / f"{name}.pt", weights_only=weights_only)
    for layout, tensor in found.items():
        assert str(tensor.layout) == f"torch.sparse_{layout}"
        assert tensor.to_dense().tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert found["coo"].is_coalesced()


def test_protocol_5_is_read() -> None:
    data = [None, True, -1, 2**70, 1.5, 1j, "tëxt", b"\x00\xff", (1, (2,)), {3}]
    assert torch.load(RECORDED / "protocol_5.pt") == data


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    return model, torch.optim.Adam(model.parameters(), lr=0.25)


def test_state_dicts_of_pytorch_go_on_here() -> None:
    state = torch.load(RECORDED / "state.pt")
    model, optimizer = trained()
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert model[1].num_batches_tracked.item() == 1
    assert optimizer.state[model[0].weight]["step"].item() == 1
    # The first step of Adam moves by the learning rate, against the sign of the gradient.
    with torch.no_grad():
        moved = torch.arange(2.0) / 4 + 1 - model[1].bias
    assert moved.abs().allclose(torch.full((2,), 0.25))


def test_modules_of_pytorch_are_read_by_their_classes() -> None:
    model = torch.load(RECORDED / "module.pt", weights_only=False)
    assert type(model) is torch.nn.Sequential
    state = torch.load(RECORDED / "state.pt")["model"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name])
    model(torch.ones(3, 2)).sum().backward()
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed(.|\n)*Sequential"):
        torch.load(RECORDED / "module.pt")


# --- round trips ----------------------------------------------------------------------------------


@BOTH
@FORMATS
def test_tensors_and_data_come_back(zipped: bool, weights_only: bool) -> None:
    base = torch.arange(6.0).view(2, 3)
    value = {
        "base": base,
        "column": base[:, 1],
        "neg": torch.ones(2, dtype=torch.complex64).conj().imag,
        "counter": Counter("aab"),
        "chars": bytearray(b"ab"),
        "tuple": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        ("key", 1): 2**100,
        "half": torch.ones(2, dtype=torch.complex32),
        "none": torch.empty(0),
    }
    found = again(value, zipped=zipped, weights_only=weights_only)
    assert list(found) == list(value)
    assert torch.equal(found["base"], base)
    found["base"][0, 1] = 9
    assert found["column"].tolist() == [9.0, 4.0]
    assert found["neg"].is_neg()
    assert found["half"].dtype is torch.complex32
    for name in ("counter", "chars", "tuple", ("key", 1)):
        assert found[name] == value[name]
        assert type(found[name]) is type(value[name])


@FORMATS
def test_what_is_one_object_stays_one(zipped: bool) -> None:
    shared: list[Any] = [torch.ones(1)]
    shared.append(shared)
    found = again([shared, shared], zipped=zipped)
    assert found[0] is found[1]
    assert found[0][1] is found[0]


@FORMATS
def test_a_module_comes_back_by_its_class(zipped: bool) -> None:
    model = torch.nn.Linear(2, 3)
    found = again(model, zipped=zipped, weights_only=False)
    assert torch.equal(found.weight, model.weight)


def test_subclasses_and_attributes_come_back_where_they_are_allowed() -> None:
    tensor = torch.ones(2).as_subclass(Marked)
    tensor.note = "kept"  # type: ignore[attr-defined]
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL \S*Marked"):
        again(tensor)
    with torch.serialization.safe_globals([Marked]):
        found = again(tensor)
    assert (type(found), found.note) == (Marked, "kept")
    assert torch.serialization.get_safe_globals() == []


def test_names_in_files_are_those_of_pytorch() -> None:
    value = [torch.nn.Linear(1, 1), torch.float32, torch.Size([1]), torch.Tensor, torch.sparse_coo]
    archive = zipfile.ZipFile(io.BytesIO(written(value)))
    assert archive.testzip() is None
    text = archive.read("archive/data.pkl")
    assert b"pullback" not in text
    for name in (b"ctorch.nn.modules.linear\nLinear\n", b"ctorch\nfloat32\n", b"ctorch\nSize\n"):
        assert text.count(name) == 1
    assert b"ctorch\nTensor\n" in text
    assert b"ctorch.serialization\n_get_layout\n" in text
    assert b"cpullback" not in written(value, _use_new_zipfile_serialization=False)


def test_the_pickle_is_the_one_that_pytorch_writes() -> None:
    theirs = zipfile.ZipFile(RECORDED / "unsigned.pt").read("unsigned/data.pkl")
    value = {name: torch.tensor([1, 2]).to(getattr(torch, name)) for name in ("uint16", "uint64")}
    ours = zipfile.ZipFile(io.BytesIO(written(value))).read("archive/data.pkl")
    assert ours == theirs


# --- places and files -----------------------------------------------------------------------------


def test_storages_go_where_they_are_wanted() -> None:
    data = written({"w": torch.ones(2)})
    seen = []

    def place(storage: Any, location: str) -> Any:
        seen.append((storage.nbytes(), location))

    for wanted in (None, "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, place):
        assert torch.load(io.BytesIO(data), map_location=wanted)["w"].tolist() == [1.0, 1.0]
    assert seen == [(8, "cpu")]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(io.BytesIO(data), map_location="cuda:0")
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        torch.load(io.BytesIO(data), map_location="moon")
    with pytest.raises(TypeError, match="'int' object is not callable"):
        torch.load(io.BytesIO(data), map_location=3)


def test_a_package_tags_storages_and_brings_them_back() -> None:
    registry = torch.serialization._package_registry
    before = list(registry)
    try:
        torch.serialization.register_package(
            1,
            lambda storage: "moon" if storage.nbytes() == 12 else None,
            lambda storage, location: storage.fill_(0) if location == "moon" else None,
        )
        assert torch.serialization.location_tag(torch.ones(3).untyped_storage()) == "moon"
        assert again([torch.ones(3), torch.ones(2)])[0].tolist() == [0.0, 0.0, 0.0]
    finally:
        registry[:] = before


@BOTH
def test_files_may_be_mapped(tmp_path: Path, weights_only: bool) -> None:
    path = tmp_path / "mapped.pt"
    torch.save({"w": torch.arange(4.0), "n": torch.ones(1)}, path)
    found = torch.load(path, mmap=True, weights_only=weights_only)
    assert found["w"].tolist() == [0.0, 1.0, 2.0, 3.0]
    found["w"][0] = 5
    assert torch.load(path)["w"][0] == 0
    with pytest.raises(ValueError, match="f must be a file path"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)
    torch.save(torch.ones(1), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)


@FORMATS
def test_a_file_may_hold_other_things_before_and_after(zipped: bool) -> None:
    buffer = io.BytesIO(b"head")
    buffer.seek(4)
    for number in range(1 if zipped else 3):
        torch.save([number, torch.ones(2)], buffer, _use_new_zipfile_serialization=zipped)
    buffer.seek(4)
    for number in range(1 if zipped else 3):
        assert torch.load(buffer)[0] == number


def test_compressed_files_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.gz", "wb") as out:
        torch.save(torch.arange(3), out)
    with gzip.open(tmp_path / "x.gz", "rb") as file:
        assert torch.load(file).tolist() == [0, 1, 2]
    deflated = io.BytesIO()
    source = zipfile.ZipFile(io.BytesIO(written(torch.zeros(100))))
    with zipfile.ZipFile(deflated, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    deflated.seek(0)
    assert torch.load(deflated).shape == (100,)


def test_the_byte_order_of_the_file_counts() -> None:
    source = zipfile.ZipFile(io.BytesIO(written(torch.tensor([1, 2], dtype=torch.int32))))
    swapped = io.BytesIO()
    with zipfile.ZipFile(swapped, "w") as archive:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("byteorder"):
                data = b"big"
            archive.writestr(name, struct.pack(">2i", 1, 2) if "/data/" in name else data)
    swapped.seek(0)
    assert torch.load(swapped).tolist() == [1, 2]


def test_an_archive_says_by_which_version_it_is_read() -> None:
    source = zipfile.ZipFile(io.BytesIO(written(torch.ones(2))))
    for missing, phrase in [("version", "failed locating file version"), ("data.pkl", "data.pkl")]:
        shorter = io.BytesIO()
        with zipfile.ZipFile(shorter, "w") as archive:
            for name in source.namelist():
                if name != f"archive/{missing}":
                    archive.writestr(name, source.read(name))
        for weights_only in (True, False):
            shorter.seek(0)
            with pytest.raises(RuntimeError, match=phrase):
                torch.load(shorter, weights_only=weights_only)


def test_data_may_be_left_out() -> None:
    with torch.serialization.skip_data():
        data = written(torch.ones(3))
        assert torch.load(io.BytesIO(written(torch.ones(3)))).tolist() == [0.0, 0.0, 0.0]
    assert torch.load(io.BytesIO(data)).tolist() == [0.0, 0.0, 0.0]
    with (
        torch.serialization.skip_data(),
        pytest.raises(RuntimeError, match="Cannot use skip_data=True"),
    ):
        written(torch.ones(1), _use_new_zipfile_serialization=False)


# --- errors ---------------------------------------------------------------------------------------


def test_damaged_files_are_errors_that_say_so() -> None:
    data = written({"w": torch.ones(100)})
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed reading zip archive"):
        torch.load(io.BytesIO(data[:-30]))
    with pytest.raises(EOFError, match="Ran out of input"):
        torch.load(io.BytesIO(b""))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps(3, protocol=2)))
    place = data.index(struct.pack("<4f", 1, 1, 1, 1))
    flipped = data[:place] + b"\x01" + data[place + 1 :]
    with pytest.warns(UserWarning, match="CRC-32"):
        torch.load(io.BytesIO(flipped))
    place = data.index(b"FloatStorage")
    with pytest.raises(RuntimeError, match="CRC-32"):
        torch.load(io.BytesIO(data[:place] + b"f" + data[place + 1 :]))
    legacy = written({"w": torch.ones(100)}, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="should have 100 elements"):
        torch.load(io.BytesIO(legacy[:-30]))


@pytest.mark.parametrize("name", ["plain_legacy", "sparse_legacy"])
def test_a_legacy_file_may_end_anywhere(name: str) -> None:
    data = (RECORDED / f"{name}.pt").read_bytes()
    for length in range(0, len(data), 7):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError, KeyError)):
            torch.load(io.BytesIO(data[:length]))


def archive_of(data: bytes, storage: bytes = struct.pack("<f", 1)) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", storage)
        archive.writestr("archive/version", "3\n")
    buffer.seek(0)
    return buffer


def test_weights_call_nothing_that_is_not_listed() -> None:
    class Call:
        def __reduce__(self) -> Any:
            return (print, ("called",))

    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL print"):
        again(Call())
    blocked = archive_of(b"cposix\nsystem\nX\x02\0\0\0ls\x85R.")
    with (
        torch.serialization.safe_globals([print]),
        pytest.raises(pickle.UnpicklingError, match=r"GLOBAL posix\.system whose module posix is"),
    ):
        torch.load(blocked)
    # What a call gives is no function of the list, whatever it is.
    made = archive_of(b"c__builtin__\nset\n)RX\x01\0\0\0a\x85R.")
    with pytest.raises(pickle.UnpicklingError, match="Trying to call reduce for unrecognized"):
        torch.load(made)
    with pytest.raises(pickle.UnpicklingError, match="Can only append to lists"):
        torch.load(archive_of(b"}Na."))
    with pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage is allowed"):
        torch.load(archive_of(b"X\x01\0\0\0a\x85Q."))
    with pytest.raises(pickle.UnpicklingError, match=r"truncated(.|\n)*at byte 0 of the pickle"):
        torch.load(archive_of(b"X\xff\xff\xff\xffabc"))


@pytest.mark.parametrize(
    "geometry",
    [(2, 0, (1,), (1,)), (1, 1, (1,), (1,)), (1, 0, (2,), (1,)), (1, 0, (-1,), (1,)),
     (1, -1, (1,), (1,)), (1, 0, (2,), (2**62,)), (2**62, 0, (1,), (1,)), (1, 0, (1, 1), (1,))],
)  # fmt: skip
@BOTH
def test_tensors_stay_inside_of_their_storages(geometry: Any, weights_only: bool) -> None:
    count, offset, size, stride = geometry

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            if value != "storage of the file":
                return None
            return ("storage", "the class", "0", "cpu", count)

    class Spoof:
        def __reduce__(self) -> Any:
            arguments = ("storage of the file", offset, size, stride, False, OrderedDict())
            return (OrderedDict, arguments)

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump(Spoof())
    data = buffer.getvalue()
    data = data.replace(b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n", 1)
    data = data.replace(b"X\x09\0\0\0the class", b"ctorch\nFloatStorage\n", 1)
    data = data.replace(b"h\x00)R", b"}")
    with pytest.raises((RuntimeError, ValueError, pickle.UnpicklingError)):
        torch.load(archive_of(data), weights_only=weights_only)


STORAGE = b"(X\x07\0\0\0storagectorch\nLongStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x01tQ"
# One number, shown 2^40 times.
ENDLESS = (
    b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE
    + b"K\0\x8a\x06\0\0\0\0\0\1\x85K\0\x85\x89}tR"
)  # fmt: skip
ORDERED = b"ccollections\nOrderedDict\n)R"
# A tuple that holds another twice, and so on: short to write, without end to walk.
DOUBLED = b")\x85" + b"2\x86" * 60


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ctorch._utils\n_rebuild_device_tensor_from_numpy\n(" + ORDERED
         + b"ctorch\nint64\nX\x03\0\0\0cpu\x89tR.", "expected an array of NumPy"),
        (ORDERED + b"}X\x13\0\0\0__array_interface__K\1sb.", "cannot set the attribute"),
        (b"ctorch\nTensor\n\x8a\x06\0\0\0\0\0\1\x85R.", "takes no arguments"),
        (b"ctorch.storage\nUntypedStorage\n\x8a\x06\0\0\0\0\0\1\x85\x81.", "takes no arguments"),
        (b"cbuiltins\nbytearray\n\x8a\x06\0\0\0\0\0\1\x85R.", "is made of bytes"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nbytearray\nctorch\nTensor\n"
         b"\x8a\x06\0\0\0\0\0\1\x85NtR.", "is made of bytes"),
        (b"c_codecs\nencode\nX\1\0\0\0aX\x08\0\0\0punycode\x86R.", "one of the encodings"),
        (b"ctorch._utils\n_rebuild_sparse_tensor\nctorch.serialization\n_get_layout\n"
         b"X\x10\0\0\0torch.sparse_coo\x85R(" + ENDLESS + ENDLESS + b"K\5\x85t\x86R.",
         "elements cannot come from 8 bytes"),
        (b"ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" + ENDLESS
         + b"ctorch\nfloat64\nX\x03\0\0\0cpu\x89tR.", "elements cannot come from 8 bytes"),
        (b"ctorch\nTensor\n)\x81(" + STORAGE + b"K\0\x8a\x06\0\0\0\0\0\1\x85K\1\x85tb.",
         "out of bounds for storage of size 8"),
        (STORAGE.replace(b"K\1", DOUBLED) + b".", "a tuple unfolds to"),
        (STORAGE.replace(b"X\x03\0\0\0cpu", DOUBLED) + b".", "a tuple unfolds to"),
        (b"}" + DOUBLED + b"Ns.", "a tuple unfolds to"),
        (b"(" + b"N" * 1000 + b"lq\0cbuiltins\nset\nq\1" + b"h\1h\0\x85R0" * 100 + b".",
         "copy more than it holds"),
        (STORAGE + STORAGE.replace(b"K\1", b"K\2") + b"\x86.", "has two sizes"),
    ],
)  # fmt: skip
def test_a_short_file_takes_no_memory_or_time_that_it_does_not_hold(
    data: bytes, message: str
) -> None:
    with pytest.raises((RuntimeError, TypeError, pickle.UnpicklingError), match=message):
        torch.load(archive_of(data, struct.pack("<q", 1)))


def test_arguments_are_checked() -> None:
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        torch.save(1, [])
    x = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        written([x, x.real])
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, "/no/such/folder/x.pt")
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(written(1)), weights_only=True, pickle_module=pickle)
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        torch.load(io.BytesIO(written(1)), weights_only=True, encoding="latin1")
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        torch.serialization.set_default_load_endianness("big")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE or mmap\.MAP_SHARED"):
        torch.serialization.set_default_mmap_options(77)


def test_unsafe_names_are_listed_without_loading() -> None:
    data = written([Kept(1), torch.ones(1)])
    (name,) = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert name.endswith("Kept")
    with torch.serialization.safe_globals([Kept]):
        assert torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == []
        found = torch.load(io.BytesIO(data))
    assert found[0].number == 1


class Halving(torch.nn.Module):
    """A module of a program."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / 2


def test_a_changed_class_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(Halving(), _use_new_zipfile_serialization=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.load(io.BytesIO(data), weights_only=False)
    changed = data.replace(b"class Halving", b"class halving", 1)
    with pytest.warns(torch.serialization.SourceChangeWarning, match="has changed"):
        torch.load(io.BytesIO(changed), weights_only=False)


def test_source_of_the_librarys_classes_is_not_compared_with_pytorchs() -> None:
    data = written(torch.nn.Flatten(), _use_new_zipfile_serialization=False)
    changed = data.replace(b"class Flatten", b"class flatten", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(torch.load(io.BytesIO(changed), weights_only=False), torch.nn.Flatten)


def test_classes_that_are_elsewhere_here_are_named_as_in_pytorch() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    value = [
        torch.nn.MultiheadAttention(2, 1),
        torch.nn.InstanceNorm1d(2),
        torch.optim.lr_scheduler.StepLR(optimizer, 3),
    ]
    text = zipfile.ZipFile(io.BytesIO(written(value))).read("archive/data.pkl")
    for name in (
        b"torch.nn.modules.activation\nMultiheadAttention\n",
        b"torch.nn.modules.instancenorm\nInstanceNorm1d\n",
        b"torch.optim.lr_scheduler\nStepLR\n",
    ):
        assert b"c" + name in text
    found = again(value, weights_only=False)
    assert [type(item) for item in found] == [type(item) for item in value]
