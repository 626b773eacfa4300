"""The meta device: what tensors, modules and gradients look like without memory.

Invariant: a call on meta tensors gives what the same call in main memory looks like, or says why
it cannot.
"""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import functional as F

NO_DATA = "Cannot copy out of meta tensor; no data!"

# Calls of a device: what they give there looks as in main memory.
CALLS: list[Callable[[Any], Any]] = [
    lambda d: torch.zeros(2, 3, device=d),
    lambda d: torch.full((2,), 1, device=d),
    lambda d: torch.arange(5, device=d),
    lambda d: torch.linspace(0, 1, 5, device=d),
    lambda d: torch.eye(3, device=d),
    lambda d: torch.tensor([1, 2.0], device=d),
    lambda d: torch.randint(0, 5, (2,), device=d),
    lambda d: torch.randperm(5, device=d),
    lambda d: torch.randn(2, 3, device=d).normal_(),
    lambda d: torch.ones(2, 3, device=d) + torch.ones(3, device=d, dtype=torch.float64),
    lambda d: torch.ones(2, 3, device=d) + torch.tensor(1.0),
    lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, 4, device=d),
    lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 1, device=d)], 1),
    lambda d: torch.stack([torch.ones(2, 3, device=d)] * 2, -1),
    lambda d: torch.ones(2, 3, device=d)[:, 1:],
    lambda d: torch.ones(2, 3, device=d)[[0, 1, 1]],
    lambda d: torch.ones(2, 3, device=d)[torch.zeros(4, dtype=torch.int64, device=d)],
    lambda d: torch.ones(2, 3, device=d).t(),
    lambda d: torch.ones(2, 3, device=d).expand(4, 2, 3),
    lambda d: torch.ones(2, 3, device=d).t().contiguous(),
    lambda d: torch.ones(2, 3, device=d).t().clone(),
    lambda d: torch.ones(2, 3, device=d).sum(1, keepdim=True),
    lambda d: torch.ones(2, 3, device=d).max(1)[1],
    lambda d: torch.ones(2, 3, device=d).sort()[1],
    lambda d: torch.ones(2, 3, device=d).topk(2)[0],
    lambda d: torch.ones(2, 3, device=d).cumsum(1),
    lambda d: torch.ones(2, 3, device=d).std(),
    lambda d: torch.ones(2, 3, device=d).norm(),
    lambda d: torch.ones(2, 3, device=d).median(),
    lambda d: torch.ones(2, 3, device=d) > 0,
    lambda d: torch.histc(torch.ones(2, 3, device=d)),
    lambda d: torch.einsum("ij,kj->ik", torch.ones(2, 3, device=d), torch.ones(4, 3, device=d)),
    lambda d: torch.ones(2, 3, device=d).masked_fill(torch.ones(3, device=d) > 0, 1.0),
    lambda d: torch.ones(2, 3, device=d).split(1)[1],
    lambda d: torch.ones(2, 3, device=d).repeat(2, 2),
    lambda d: torch.linalg.svd(torch.ones(2, 3, device=d))[1],
    lambda d: torch.linalg.qr(torch.ones(2, 3, device=d))[0],
    lambda d: torch.linalg.inv(torch.eye(3, device=d)),
    lambda d: torch.linalg.solve(torch.eye(3, device=d), torch.ones(3, 2, device=d)),
    lambda d: torch.linalg.eigh(torch.eye(3, device=d))[0],
    lambda d: F.softmax(torch.ones(2, 3, device=d), -1),
    lambda d: F.cross_entropy(
        torch.ones(2, 3, device=d), torch.zeros(2, dtype=torch.int64, device=d)
    ),
    lambda d: F.scaled_dot_product_attention(*[torch.ones(2, 4, 5, 8, device=d)] * 3),
    lambda d: nn.Linear(3, 4, device=d)(torch.ones(2, 3, device=d)),
    lambda d: nn.Conv2d(3, 8, 3, device=d)(torch.ones(2, 3, 8, 8, device=d)),
    lambda d: nn.LayerNorm(3, device=d)(torch.ones(2, 3, device=d)),
    lambda d: nn.BatchNorm2d(3, device=d)(torch.ones(2, 3, 8, 8, device=d)),
    lambda d: nn.LSTM(3, 4, device=d)(torch.ones(5, 2, 3, device=d))[0],
    lambda d: nn.MultiheadAttention(4, 2, device=d)(*[torch.ones(5, 2, 4, device=d)] * 3)[0],
    lambda d: nn.Embedding(10, 3, device=d)(torch.zeros(4, dtype=torch.int64, device=d)),
    lambda d: nn.MaxPool2d(2)(torch.ones(2, 3, 8, 8, device=d)),
    lambda d: torch.func.vmap(lambda x: x.sum())(torch.ones(2, 3, device=d)),
    lambda d: torch.func.grad(lambda x: (x * x).sum())(torch.ones(2, 3, device=d)),
    lambda d: torch.func.jvp(torch.sin, *[(torch.ones(2, device=d),)] * 2)[1],
]


def meta(*size: int, **options: Any) -> Any:
    return torch.empty(*size, device="meta", **options)


@pytest.mark.parametrize("nr", range(len(CALLS)))
def test_results_look_as_in_main_memory(nr: int) -> None:
    there, here = CALLS[nr]("meta"), CALLS[nr]("cpu")
    assert there.device.type == "meta"
    assert there.is_meta
    assert there.shape == here.shape
    assert there.dtype == here.dtype
    assert there.stride() == here.stride()
    assert there.requires_grad == here.requires_grad


def test_tensors_are_shown_without_elements() -> None:
    assert repr(meta(2, 3)) == "tensor(..., device='meta', size=(2, 3))"
    text = "tensor(..., device='meta', size=(2,), dtype=torch.int32)"
    assert repr(meta(2, dtype=torch.int32)) == text


def test_memory_is_counted_and_not_there() -> None:
    x = meta(1 << 20, 1 << 20)
    assert x.untyped_storage().nbytes() == 1 << 42
    assert x.nbytes == 1 << 42
    assert x.data_ptr() == 0
    assert x.untyped_storage().device == torch.device("meta")


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: torch.ones(2, 3).copy_(x),
        lambda x: x.untyped_storage().cpu(),
        lambda x: nn.Linear(3, 4, device="meta").to("cpu"),
    ],
)
def test_nothing_comes_out(read: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match=NO_DATA):
        read(meta(2, 3))


def test_elements_cannot_be_asked_for() -> None:
    for number in (bool, float, int, lambda x: x.item()):
        with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
            number(torch.empty((), device="meta"))
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        meta(2).numpy()


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.nonzero(),
        lambda x: torch.unique(x),
        lambda x: x[x > 0],
        lambda x: torch.masked_select(x, x > 0),
        lambda x: torch.equal(x, x),
        lambda x: torch.bincount(x.long().flatten()),
    ],
)
def test_what_depends_on_elements_is_refused(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"Meta|depends on the elements of"):
        ask(meta(2, 3))


def test_writes_check_shapes_and_count_versions() -> None:
    x = meta(2, 3)
    version = x._version
    assert x.add_(1) is x
    assert x._version == version + 1
    assert x.copy_(torch.ones(2, 3)) is x
    out = torch.add(x, x, out=meta(0))
    assert out.shape == (2, 3)
    assert x.resize_(4, 4).shape == (4, 4)
    with pytest.raises(RuntimeError):
        meta(3).add_(meta(2, 3))
    with pytest.raises(RuntimeError):
        torch.add(x, x, out=torch.empty(0))
    with pytest.raises(RuntimeError, match="same device"):
        meta(3) + torch.ones(3)


def test_likes_may_have_memory() -> None:
    x = meta(2, 3, dtype=torch.float64).t()
    zeros = torch.zeros_like(x, device="cpu")
    assert zeros.stride() == (1, 3)
    assert zeros.tolist() == [[0.0, 0.0]] * 3
    assert x.new_ones(2, device="cpu").tolist() == [1.0, 1.0]
    assert torch.empty_like(torch.ones(2), device="meta").is_meta
    assert torch.ones(2).to("meta").is_meta
    assert x.to("meta") is x


def test_a_module_gets_memory_by_to_empty() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to("meta")
    assert all(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))
    model(meta(2, 3)).sum().backward()
    assert model[0].weight.grad.is_meta
    assert model[0].weight.grad.shape == (4, 3)
    model.to_empty(device="cpu")
    source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.load_state_dict(source.state_dict())
    x = torch.randn(5, 3)
    assert torch.equal(model(x), source(x))


def test_a_state_can_be_assigned() -> None:
    source = nn.Linear(2, 2)
    model = nn.Linear(2, 2, device="meta")
    model.load_state_dict(source.state_dict(), assign=True)
    assert not model.weight.is_meta
    assert torch.equal(model.weight, source.weight)


def test_gradients_of_higher_order_are_on_the_device() -> None:
    x = meta(3, requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.is_meta
    assert second.shape == (3,)


def test_the_default_device_can_be_meta() -> None:
    with torch.device("meta"):
        layer = nn.Linear(2, 3)
        assert torch.ones(2).is_meta
    assert layer.weight.is_meta
    assert not torch.ones(2).is_meta
    torch.set_default_device("meta")
    try:
        assert torch.zeros(1).is_meta
    finally:
        torch.set_default_device(None)


def test_copies_pickles_and_files_keep_the_geometry() -> None:
    x = meta(2, 3).t()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.is_meta
        assert (y.shape, y.stride()) == (x.shape, x.stride())
    file = io.BytesIO()
    torch.save({"w": x}, file)
    file.seek(0)
    assert torch.load(file)["w"].shape == (3, 2)
    file = io.BytesIO()
    torch.save({"w": torch.ones(2)}, file)
    file.seek(0)
    assert torch.load(file, map_location="meta")["w"].is_meta


def test_storages_of_the_device_have_sizes_but_no_elements() -> None:
    untyped = meta(2, 3).untyped_storage()
    assert (untyped.nbytes(), untyped.data_ptr(), untyped.device.type) == (24, 0, "meta")
    assert repr(untyped) == "...\n[torch.storage.UntypedStorage(device=meta) of size 24]"
    with warnings.catch_warnings():
        # (TypedStorage is deprecated, which is said once.)
        warnings.simplefilter("ignore", UserWarning)
        typed = torch.TypedStorage([1, 2, 3], dtype=torch.int16, device="meta")
    assert (typed.size(), typed.nbytes()) == (3, 6)
    assert repr(typed).startswith(
        "...\n[torch.storage.TypedStorage(dtype=torch.int16, device=meta)"
    )
    empty = torch.UntypedStorage(device="meta")
    questions = [
        lambda: untyped[0],
        lambda: empty[0],
        untyped.tolist,
        lambda: bytes(untyped),
        lambda: untyped.__setitem__(0, 1),
        lambda: list(untyped),
        lambda: typed[0],
        typed.tolist,
        lambda: typed.__setitem__(0, 1),
    ]
    for question in questions:
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            question()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        typed.cpu()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        typed.share_memory_()
    assert typed.resize_(10).size() == 10
    assert typed.fill_(1) is typed


def test_a_number_without_memory_is_formatted_as_it_prints() -> None:
    x = torch.empty((), device="meta")
    assert f"{x}" == repr(x) == "tensor(..., device='meta', size=())"
