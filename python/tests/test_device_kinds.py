"""Kinds of devices that have a name and no backend here."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

# PyTorch's names, in the order in which its error lists them.
KINDS = [
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga"),
    *("maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
]
ABSENT = [kind for kind in KINDS if kind not in ("cpu", "cuda", "meta")]
# What PyTorch raises for `zeros(2, device=kind)` where it was built for main memory alone.
CLASSES: dict[str, type[Exception]] = {
    "xpu": AssertionError,
    "mtia": AssertionError,
    "hpu": ModuleNotFoundError,
    "privateuseone": ModuleNotFoundError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_devices_are_read_printed_compared_and_pickled(kind: str) -> None:
    plain, indexed = torch.device(kind), torch.device(f"{kind}:1")
    assert (plain.type, plain.index, str(plain)) == (kind, None, kind)
    assert (indexed.type, indexed.index, str(indexed)) == (kind, 1, f"{kind}:1")
    assert repr(plain) == f"device(type='{kind}')"
    assert repr(indexed) == f"device(type='{kind}', index=1)"
    assert plain == torch.device(kind) != indexed == torch.device(kind, 1)
    assert plain != torch.device(f"{kind}:0")
    assert len({plain, torch.device(kind), indexed, torch.device(indexed)}) == 2
    for device in (plain, indexed):
        assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device
    assert (plain == kind) is False


@pytest.mark.parametrize("kind", ABSENT)
def test_kinds_differ_from_each_other(kind: str) -> None:
    assert [other for other in KINDS if torch.device(other) == torch.device(kind)] == [kind]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Device string must not be empty"),
        ("mps:", "Invalid device string: 'mps:'"),
        ("mps:-1", "Invalid device string: 'mps:-1'"),
        ("mps:+1", "Invalid device string: 'mps:\\+1'"),
        ("mps:01", "Invalid device string: 'mps:01'"),
        ("mps:a", "Invalid device string: 'mps:a'"),
        ("xla:1:2", "Invalid device string: 'xla:1:2'"),
        ("mps ", "Invalid device string: 'mps '"),
        (":1", "Invalid device string: ':1'"),
        ("MPS", f"Expected one of {', '.join(KINDS)} device type at start of device string: MPS"),
        ("npu", "Expected one of cpu, cuda, .* device type at start of device string: npu"),
    ],
)
def test_other_texts_name_no_device(text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        torch.device(text)


MADE: dict[str, Callable[[str], Any]] = {
    "zeros": lambda kind: torch.zeros(2, device=kind),
    "empty": lambda kind: torch.empty(0, device=kind),
    "tensor": lambda kind: torch.tensor([1.0], device=kind),
    "to": lambda kind: torch.ones(2).to(kind),
    "from meta": lambda kind: torch.ones(2, device="meta").to(kind),
    "like": lambda kind: torch.rand_like(torch.ones(2), device=kind),
    "strided": lambda kind: torch.empty_strided((2,), (1,), device=kind),
    "sparse": lambda kind: torch.sparse_coo_tensor(size=(2,), device=kind),
    "a storage": lambda kind: torch.UntypedStorage(3, device=kind),
    "a module": lambda kind: torch.nn.Linear(2, 2).to(kind),
}


@pytest.mark.parametrize("kind", ABSENT)
@pytest.mark.parametrize("made", MADE)
def test_no_tensor_can_be_made_there(kind: str, made: str) -> None:
    wanted = CLASSES.get(kind, NotImplementedError)
    with pytest.raises(wanted, match=f"device '{kind}' is not available") as caught:
        MADE[made](kind)
    assert type(caught.value) is wanted


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_a_default_device_is_refused_where_something_is_made(kind: str) -> None:
    with (
        torch.device(kind),
        pytest.raises((NotImplementedError, AssertionError), match=f"device '{kind}'"),
    ):
        torch.zeros(2)
    assert torch.zeros(2).device.type == "cpu"


@pytest.mark.parametrize("kind", ["mps", "xpu", "mtia", "cuda"])
def test_the_modules_say_that_nothing_is_there(kind: str) -> None:
    module = getattr(torch, kind)
    assert module.is_available() is False
    assert module.device_count() == 0
    assert getattr(torch.ones(2), f"is_{kind}", False) is False
    assert torch.ones(2).is_pinned(kind) is False


def test_one_main_memory_takes_any_index() -> None:
    assert torch.zeros(2, device="cpu:1").device == torch.device("cpu")
    assert torch.zeros(2, device="meta:3").device.type == "meta"
