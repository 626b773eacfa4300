"""Gradients of every example of a batch: ``vmap(grad(loss))`` beside the loops that give the same.

The network is the example's CNN on its own images. ``python benches/per_sample.py pullback`` (or
``torch``, under an interpreter that has it) prints the shortest time of each way, and how many
times as long the loops take. Both loops stack their results, as ``vmap`` gives them: one calls the
function that ``vmap`` is given, the other is written by hand with ``autograd.grad``.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Calls of one way before the next has its turn.
CALLS = 5
EXAMPLE = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLE / "python"))


def ways(library: str, count: int, threads: int | None) -> dict[str, Callable[[], Any]]:
    """The three ways, by name."""
    from digits_model import make_cnn

    lib = importlib.import_module(library)
    func = importlib.import_module(f"{library}.func")
    if threads is not None:
        lib.set_num_threads(threads)
    lib.manual_seed(0)
    model = make_cnn(lib).eval()
    images, labels = lib.rand(count, 1, 8, 8), lib.arange(count) % 10
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    leaves = list(model.parameters())

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        scores = func.functional_call(model, parameters, (image.unsqueeze(0),))
        return lib.nn.functional.cross_entropy(scores, label.unsqueeze(0))

    gradient = func.grad(loss)
    batched = func.vmap(gradient, in_dims=(None, 0, 0))

    def same_function() -> Any:
        each = [gradient(parameters, images[i], labels[i]) for i in range(count)]
        return {name: lib.stack([one[name] for one in each]) for name in parameters}

    def by_hand() -> Any:
        each = []
        for i in range(count):
            scores = model(images[i : i + 1])
            value = lib.nn.functional.cross_entropy(scores, labels[i : i + 1])
            each.append(lib.autograd.grad(value, leaves))
        return [lib.stack(one) for one in zip(*each, strict=True)]

    return {
        "vmap(grad)": lambda: batched(parameters, images, labels),
        "loop of grad": same_function,
        "loop by hand": by_hand,
    }


def shortest(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The shortest time of each way, in milliseconds.

    They take turns, as a machine's load changes, of several calls, as a program repeats one way.
    """
    times = dict.fromkeys(ways, math.inf)
    for _ in range(rounds):
        for name, way in ways.items():
            for _ in range(CALLS):
                start = time.perf_counter()
                way()
                times[name] = min(times[name], (time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    """Measures the three ways and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=("pullback", "torch"))
    parser.add_argument("--count", type=int, default=64, help="examples of the batch")
    parser.add_argument("--threads", type=int, help="all processors if it is not given")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    times = shortest(ways(given.library, given.count, given.threads), given.rounds)
    least = times["vmap(grad)"]
    for name, taken in times.items():
        print(f"{name:14}{taken:9.3f} ms{taken / least:8.2f} x")


if __name__ == "__main__":
    main()
