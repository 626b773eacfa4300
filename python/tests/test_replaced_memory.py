"""Memory that a tensor no longer shows is given back, and never while somebody reads it."""

import threading
import warnings

import pytest

import pullback as torch

MEGABYTE = 1 << 20


def live() -> int:
    return torch.memory.stats()["live"]


def block() -> torch.Tensor:
    return torch.ones(MEGABYTE // 4)


def assign(x: torch.Tensor) -> None:
    x.data = block()


def move(x: torch.Tensor) -> None:
    x.set_(block())


def grow(x: torch.Tensor) -> None:
    x.resize_(x.numel() + 1000)


@pytest.mark.parametrize("change", [assign, move, grow])
def test_replaced_memory_is_freed_at_once(change):
    x = block()
    before = live()
    for _ in range(20):
        change(x)
    assert live() - before < MEGABYTE


@pytest.mark.parametrize("change", [assign, move])
def test_a_replaced_tensor_keeps_few_records(change):
    x = block()
    change(x)
    change(x)
    before = live()
    for _ in range(1000):
        change(x)
    assert live() == before


def test_growing_out_does_not_keep_every_size():
    out = torch.empty(0)
    before = live()
    for n in range(1, 40):
        torch.cat([torch.ones(n * 8000), torch.ones(10)], out=out.resize_(0))
    assert live() - before < 3 * 39 * 8000 * 4


def test_a_parameter_may_be_replaced_in_its_own_hook():
    w = block().requires_grad_()

    def step(p):
        p.data = p.data - 0.1 * p.grad
        p.grad = None

    w.register_post_accumulate_grad_hook(step)
    (w * 2).sum().backward()
    before = live()
    for _ in range(20):
        (w * 2).sum().backward()
    assert live() - before < MEGABYTE


def test_module_conversion_frees_the_old_parameters():
    module = torch.nn.Linear(1000, 1000)
    before = live()
    module.double()
    assert live() - before < 4_300_000
    module.float()
    assert live() - before < 100_000


def test_a_borrower_outside_keeps_the_old_block():
    numpy = pytest.importorskip("numpy")
    x = torch.ones(1000)
    array = x.numpy()
    x.data = torch.zeros(1000)
    filler = [torch.zeros(1000) for _ in range(100)]
    assert (array == 1).all()
    assert len(filler) == 100
    capsule_source = torch.full((1000,), 3.0)
    borrowed = numpy.from_dlpack(capsule_source)
    capsule_source.resize_(1_000_000)
    assert (borrowed == 3).all()


def test_replacing_while_other_threads_read():
    x = torch.ones(200_000)
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            seen.append(float((x + 0).min()))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(200):
        x.data = torch.ones(200_000)
        x.resize_(100)
        x.data = torch.ones(200_000)
    stop.set()
    for reader in readers:
        reader.join()
    assert seen
    assert min(seen) >= 0
    x.data = torch.ones(1)
    before = live()
    x.data = torch.ones(1)
    assert live() == before


def test_a_warning_in_the_middle_of_an_op_frees_nothing(monkeypatch):
    x = block()

    def replace(*_args, **_kwargs):
        before = live()
        x.data = block()
        assert live() - before >= MEGABYTE
        seen.append(True)

    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", replace)
        assert torch.std(torch.ones(1)).isnan()
    assert seen
    before = live()
    x.data = block()
    assert live() - before < 0
