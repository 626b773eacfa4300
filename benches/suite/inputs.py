"""The inputs of all cases: numbers from NumPy, so that every library works on the same ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from small_case import Library, Tensor


class Inputs:
    """Makes tensors of one library. Equal arguments give equal numbers in every library."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @property
    def functional(self) -> Any:
        """The library's `nn.functional`."""
        return self.library.nn.functional

    def tensor(self, array: Any, dtype: str | None = None, gradient: bool = False) -> Tensor:
        """A tensor with memory of its own, optionally converted, optionally a leaf."""
        tensor = self.library.from_numpy(np.asarray(array)).clone()
        if dtype is not None:
            tensor = tensor.to(getattr(self.library, dtype))
        return tensor.requires_grad_() if gradient else tensor

    def normal(
        self,
        *shape: int,
        seed: int = 0,
        scale: float = 1.0,
        dtype: str | None = None,
        gradient: bool = False,
    ) -> Tensor:
        """Normally distributed numbers, single precision unless a dtype is named."""
        return self.tensor(normal(*shape, seed=seed, scale=scale), dtype, gradient)

    def doubles(self, *shape: int, seed: int = 0) -> Tensor:
        """Normally distributed numbers that need double precision."""
        return self.tensor(generator(seed, shape).standard_normal(shape))

    def positive(self, *shape: int) -> Tensor:
        """Normally distributed numbers without their sign, at least 0.1."""
        return self.tensor(np.abs(normal(*shape)) + np.float32(0.1))

    def complex(self, *shape: int) -> Tensor:
        """Complex numbers whose parts are normally distributed."""
        return self.library.complex(self.normal(*shape), self.normal(*shape, seed=1))

    def integers(self, end: int, *shape: int, seed: int = 0) -> Tensor:
        """Whole numbers from 0 to below `end`."""
        return self.tensor(generator(seed, shape).integers(0, end, shape).astype(np.int64))

    def positive_definite(self, size: int, gradient: bool = False) -> Tensor:
        """A symmetric matrix whose eigenvalues are 1 or more."""
        factor = np.random.default_rng(size).standard_normal((size, size)).astype(np.float32)
        matrix = factor @ factor.T / size + np.eye(size, dtype=np.float32)
        return self.tensor(matrix, gradient=gradient)

    def initialized(self, module: Any) -> Any:
        """The module with its parameters set: each library has random numbers of its own.

        Weights and biases are uniform in plus and minus 1 / sqrt(number of inputs); layers that
        normalize (their names say so) begin as the identity.
        """
        random = np.random.default_rng(0)
        with self.library.no_grad():
            for name, parameter in module.named_parameters():
                shape = tuple(parameter.shape)
                if "norm" in name and len(shape) == 1:
                    value = np.full(shape, float(name.endswith("weight")), np.float32)
                else:
                    inputs = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
                    bound = 1.0 / math.sqrt(max(inputs, 1))
                    value = random.uniform(-bound, bound, shape).astype(np.float32)
                parameter.copy_(self.tensor(value))
        return module


def generator(seed: int, shape: tuple[int, ...]) -> np.random.Generator:
    """The random stream of a seed and a shape."""
    return np.random.default_rng([seed, *shape])


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Normally distributed numbers of single precision, as an array."""
    array = generator(seed, shape).standard_normal(shape, dtype=np.float32)
    return array * np.float32(scale) if scale != 1.0 else array
