"""Errors of ``torch.compile``."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "InvalidBackend",
    "TensorifyScalarRestartAnalysis",
    "TorchDynamoException",
]


class TorchDynamoException(RuntimeError):
    """An error of a request to compile."""


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


class BackendCompilerFailed(TorchDynamoException):
    """Raised by PyTorch for an error within a backend; here that error itself is raised.

    Args:
        backend_fn: the backend.
        inner_exception: its error.
    """

    def __init__(self, backend_fn: object, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(
            f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: "
            f"{inner_exception}"
        )


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """The exception by which a compiler restarts, which nothing here does: programs name it."""
