"""What processes of `test_multiprocessing.py` run: a fresh process imports it from here."""

from __future__ import annotations

import os
import signal
from typing import Any

import pullback as torch
from pullback import nn


def add(number: int, tensor: Any) -> None:
    tensor[number] += number + 1


def fail(number: int) -> None:
    if number == 1:
        raise ValueError("the second one fails")
    torch.ones(1)


def leave(number: int, code: int) -> None:
    if code < 0:
        os.kill(os.getpid(), signal.Signals(-code))
    os._exit(code)


def double(tensor: Any) -> Any:
    return tensor * 2


def receive(queue: Any, answers: Any) -> None:
    for _ in range(2):
        tensor = queue.get()
        tensor.add_(1)
        answers.put(float(tensor.sum()))
    # Until the sender has looked.
    queue.get()


def train(number: int, model: nn.Linear) -> None:
    with torch.no_grad():
        model.weight[number] = number


def identity(queue: Any, answers: Any) -> None:
    first, second = queue.get(), queue.get()
    answers.put(
        (
            first.untyped_storage() is second.untyped_storage(),
            type(first) is nn.Parameter,
            first.requires_grad,
        )
    )
