"""Seeds, states, and the numbers themselves, which are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

# Name of the draw -> (seed, draw, PyTorch's numbers).
RECORDED: dict[str, tuple[int, Callable[[], Any], list[Any]]] = {
    "rand": (
        0,
        lambda: torch.rand(4),
        [0.49625658988952637, 0.7682217955589294, 0.08847743272781372, 0.13203048706054688],
    ),
    "rand_double": (
        0,
        lambda: torch.rand(4, dtype=torch.float64),
        [0.9700530018065531, 0.707819864399788, 0.45938294312745087, 0.9207476841219603],
    ),
    "randn_few": (
        0,
        lambda: torch.randn(4),
        [1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991],
    ),
    "randn_few_double": (
        0,
        lambda: torch.randn(4, dtype=torch.float64),
        [1.5409961082440433, -0.2934289057609464, -2.1787893820745574, 0.5684312772806678],
    ),
    # 16 numbers and more come from another algorithm.
    "randn_many": (
        0,
        lambda: torch.randn(20),
        [
            -1.1258398294448853,
            -1.152360200881958,
            -0.2505785822868347,
            -0.4338788092136383,
            0.5988394618034363,
            -1.5550950765609741,
            -0.3413603901863098,
            1.85300612449646,
            0.46809640526771545,
            -0.1577124446630478,
            1.4436601400375366,
            0.26604941487312317,
            1.3893661499023438,
            1.586334228515625,
            0.946298360824585,
            -0.843676745891571,
            0.9318265914916992,
            1.2590092420578003,
            2.0049805641174316,
            0.05373690277338028,
        ],
    ),
    "randperm": (0, lambda: torch.randperm(10), [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),
    "randint": (
        0,
        lambda: torch.randint(0, 100, (10,)),
        [44, 39, 33, 60, 63, 79, 27, 3, 97, 83],
    ),
    "randint_wide": (
        0,
        lambda: torch.randint(-(2**62), 2**62, (3,)),
        [-3711235831533098449, -642142871786238784, -2716036421228801285],
    ),
    "bernoulli": (
        42,
        lambda: torch.bernoulli(torch.full((8,), 0.5)),
        [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
    ),
    "multinomial": (
        42,
        lambda: torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 6, True),
        [0, 0, 1, 0, 2, 2],
    ),
    "uniform_": (
        42,
        lambda: torch.empty(4).uniform_(-1, 1),
        [0.7645385265350342, 0.8300079107284546, -0.23427248001098633, 0.9186112880706787],
    ),
    "normal_": (
        42,
        lambda: torch.empty(4).normal_(3, 0.5),
        [3.1683452129364014, 3.0644047260284424, 3.1172311305999756, 3.115166425704956],
    ),
    "exponential_": (
        42,
        lambda: torch.empty(4).exponential_(),
        [0.05991401523351669, 0.06497612595558167, 0.13191677629947662, 0.054012950509786606],
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_draws_the_recorded_numbers(name: str) -> None:
    seed, draw, expected = RECORDED[name]
    torch.manual_seed(seed)
    got = draw().tolist()
    # The last bit of a logarithm is the library's own.
    assert got == pytest.approx(expected, rel=3e-7, abs=1e-9)
    if name.startswith(("rand", "bernoulli", "multinomial")) and not name.startswith("randn"):
        assert got == expected


def test_the_same_seed_gives_the_same_numbers() -> None:
    torch.manual_seed(7)
    first = (torch.randn(5), torch.rand(3), torch.randperm(6))
    torch.manual_seed(7)
    second = (torch.randn(5), torch.rand(3), torch.randperm(6))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(torch.randn(5), first[0])
    assert torch.initial_seed() == 7


def test_a_negative_seed_is_its_unsigned_64_bits() -> None:
    torch.manual_seed(-1)
    first = torch.rand(3)
    torch.manual_seed(2**64 - 1)
    assert torch.equal(torch.rand(3), first)


def test_state_goes_back_and_forth() -> None:
    torch.manual_seed(3)
    torch.randn(3)
    state = torch.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.shape == (5056,)
    first = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(torch.randn(5), first)


def test_state_holds_the_second_normal_number() -> None:
    torch.manual_seed(3)
    torch.randn(1)
    state = torch.get_rng_state()
    first = torch.randn(1)
    torch.set_rng_state(state)
    assert torch.equal(torch.randn(1), first)


def test_a_state_is_a_copy() -> None:
    state = torch.get_rng_state()
    kept = state.clone()
    torch.rand(2000)
    assert torch.equal(state, kept)


def test_wrong_states_are_errors() -> None:
    with pytest.raises(RuntimeError):
        torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError):
        torch.set_rng_state(torch.zeros(5056))


def test_own_generators_are_independent() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    own = torch.Generator()
    own.manual_seed(5)
    drawn = torch.rand(4, generator=own)
    assert torch.equal(torch.rand(3), expected)
    again = torch.Generator().manual_seed(5)
    assert torch.equal(torch.rand(4, generator=again), drawn)
    assert again.initial_seed() == 5


def test_fork_puts_the_state_back() -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.rand(17)
    assert torch.equal(torch.rand(2), expected)


def test_seed_gives_the_seed_in_use() -> None:
    made = torch.seed()
    assert torch.initial_seed() == made
    first = torch.rand(2)
    torch.manual_seed(made)
    assert torch.equal(torch.rand(2), first)
    torch.manual_seed(0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.randint(5, 5, (2,)),
        lambda: torch.randint(5, 2, (2,)),
        lambda: torch.randint(0, 300, (2,), dtype=torch.uint8),
        lambda: torch.randperm(-1),
        lambda: torch.randn(3, dtype=torch.int64),
        lambda: torch.rand(3, dtype=torch.bool),
        lambda: torch.bernoulli(torch.tensor([1.5])),
        lambda: torch.bernoulli(torch.tensor([-0.1])),
        lambda: torch.multinomial(torch.tensor([1.0, 2.0]), 3),
        lambda: torch.multinomial(torch.tensor([-1.0, 2.0]), 1),
        lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 1),
        lambda: torch.empty(2).uniform_(2, 1),
        lambda: torch.empty(2).normal_(0, -1),
        lambda: torch.empty(2).exponential_(-1),
    ],
)
def test_impossible_draws_are_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError):
        call()


def test_draws_of_nothing() -> None:
    assert torch.rand(0).shape == (0,)
    assert torch.randn(3, 0).shape == (3, 0)
    assert torch.randperm(0).tolist() == []
    assert torch.randint(3, (0,)).tolist() == []


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16])
def test_trials_are_written_in_any_dtype(dtype: torch.dtype) -> None:
    p = torch.tensor([0.0, 1.0, 1.0, 0.0])
    out = torch.full((4,), 2).to(dtype)
    assert torch.bernoulli(p, out=out) is out
    assert out.tolist() == [0, 1, 1, 0]
