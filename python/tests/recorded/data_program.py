"""What samplers, splits and loaders draw from a seed, for any library with these names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COUNT = 23


def _loader(library: Any, **options: Any) -> Any:
    data = library.utils.data
    return data.DataLoader(data.TensorDataset(library.arange(COUNT)), **options)


def _passes(loader: Any, count: int = 2) -> list[list[list[int]]]:
    return [[batch[0].reshape(-1).tolist() for batch in loader] for _ in range(count)]


def _shuffled_with_generator(library: Any) -> Any:
    generator = library.Generator()
    generator.manual_seed(5)
    return _passes(_loader(library, batch_size=4, shuffle=True, generator=generator))


def _splits(library: Any) -> Any:
    data = library.utils.data
    dataset = data.TensorDataset(library.arange(COUNT))
    by_count = data.random_split(dataset, [10, 9, 4])
    by_share = data.random_split(dataset, [0.5, 0.3, 0.2])
    return [list(part.indices) for part in (*by_count, *by_share)]


CASES: dict[str, Callable[[Any], Any]] = {
    "shuffled": lambda lib: _passes(_loader(lib, batch_size=5, shuffle=True)),
    "shuffled_drop_last": lambda lib: _passes(
        _loader(lib, batch_size=5, shuffle=True, drop_last=True)
    ),
    "shuffled_items": lambda lib: _passes(_loader(lib, batch_size=None, shuffle=True)),
    "shuffled_generator": _shuffled_with_generator,
    "shuffled_workers": lambda lib: _passes(
        _loader(lib, batch_size=5, shuffle=True, num_workers=2)
    ),
    "shuffled_persistent": lambda lib: _passes(
        _loader(lib, batch_size=5, shuffle=True, num_workers=2, persistent_workers=True), 3
    ),
    "with_replacement": lambda lib: list(
        lib.utils.data.RandomSampler(range(10), replacement=True, num_samples=70)
    ),
    "more_than_all": lambda lib: list(lib.utils.data.RandomSampler(range(10), num_samples=25)),
    "subset": lambda lib: list(lib.utils.data.SubsetRandomSampler([3, 1, 4, 15, 9])),
    "weighted": lambda lib: list(lib.utils.data.WeightedRandomSampler([0.1, 0.9, 0.5], 20)),
    "weighted_once": lambda lib: list(
        lib.utils.data.WeightedRandomSampler([0.1, 0.9, 0.5, 0.2], 3, replacement=False)
    ),
    "splits": _splits,
}


def run(library: Any, case: str) -> dict[str, Any]:
    """The draws of a case, and one number that the generator gives after it."""
    library.manual_seed(11)
    drawn = CASES[case](library)
    return {"drawn": drawn, "next": library.randint(0, 1000, (1,)).item()}
