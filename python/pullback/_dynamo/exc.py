"""Errors of ``torch.compile``."""

from __future__ import annotations

__all__ = ["InvalidBackend", "TensorifyScalarRestartAnalysis", "TorchDynamoException"]


class TorchDynamoException(RuntimeError):
    """What is wrong with a request to compile."""


class InvalidBackend(TorchDynamoException):
    """A backend that is not there.

    Args:
        name: what was asked for.
        available: the backends that are there.
    """

    def __init__(self, name: str, available: list[str]) -> None:
        super().__init__(
            f"Invalid backend: {name!r}. See `torch._dynamo.list_backends()` for available "
            f"backends: here {', '.join(available)}."
        )


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """What a compiler raises to begin again, which nothing here does: programs name it."""
