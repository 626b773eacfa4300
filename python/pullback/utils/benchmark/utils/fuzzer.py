"""Random inputs for measurements: parameters drawn by their distributions, and tensors of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from .... import _C

__all__ = [
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "ParameterAlias",
]

_DISTRIBUTIONS = ("loguniform", "uniform")


class ParameterAlias:
    """Stands for a parameter of another name, whose value it has.

    Args:
        alias_to: the name.
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A parameter that is drawn.

    Args:
        name: its name.
        minval: the least value, for the two distributions with names.
        maxval: the greatest value.
        distribution: ``"uniform"``, ``"loguniform"`` (whole numbers where both bounds are), or
            values with their probabilities.
        strict: whether an alias among the values may not be for itself.

    Raises:
        ValueError: for another distribution, bounds that are missing or in the wrong order, and
            probabilities that do not add up to one.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name = name
        self._minval, self._maxval = minval, maxval
        self.strict = strict
        if isinstance(distribution, dict):
            total = math.fsum(distribution.values())
            if not math.isclose(total, 1.0, abs_tol=1e-6):
                raise ValueError(f"the probabilities of {name} add up to {total}, not 1")
        else:
            if distribution not in _DISTRIBUTIONS:
                raise ValueError(f"Unknown distribution: {distribution}")
            if minval is None or maxval is None or minval > maxval:
                raise ValueError(f"{name} needs minval <= maxval, but got {minval} and {maxval}")
            if distribution == "loguniform" and minval <= 0:
                raise ValueError(f"loguniform needs minval > 0, but got {minval}")
        self._distribution: Any = distribution

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def sample(self, state: Any) -> Any:
        """A value, drawn with a generator of NumPy."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(len(values), p=list(self._distribution.values()))]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        is_whole = isinstance(low, int) and isinstance(high, int)
        if self._distribution == "uniform":
            return int(state.randint(low, high + 1)) if is_whole else state.uniform(low, high)
        drawn = math.exp(state.uniform(math.log(low), math.log(high)))
        return min(max(round(drawn), int(low)), int(high)) if is_whole else drawn


class FuzzedTensor:
    """A tensor whose shape and strides are drawn.

    Args:
        name: its name.
        size: its sizes, numbers or names of parameters.
        steps: for each dimension how far elements are apart, numbers or names of parameters.
        probability_contiguous: how likely the dimensions lie in memory in their order.
        min_elements: with fewer elements it is drawn again.
        max_elements: with more elements it is drawn again.
        max_allocation_bytes: with more memory it is drawn again.
        dim_parameter: the name of the parameter that says how many dimensions it has.
        roll_parameter: the name of the parameter by which the dimensions are rolled.
        dtype: the dtype.
        cuda: whether it is on the device.
        tensor_constructor: makes it of ``size`` and ``dtype``; random numbers unless given.
    """

    def __init__(
        self,
        name: str,
        size: tuple[Any, ...],
        steps: tuple[Any, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = _C.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        self._name = name
        self._size, self._steps = size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._dtype, self._cuda = dtype, cuda
        self._constructor = tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _resolved(self, values: Any, params: dict[str, Any]) -> tuple[int, ...]:
        dims = params[self._dim_parameter] if self._dim_parameter else len(self._size)
        found = [params[v] if isinstance(v, str) else v for v in values or (1,) * dims]
        return tuple(int(value) for value in found[:dims])

    def _make(self, size: tuple[int, ...], params: dict[str, Any]) -> Any:
        from .... import randint, randn

        if self._constructor is not None:
            return self._constructor(size=size, dtype=self._dtype, **params)
        if self._dtype.is_floating_point or self._dtype.is_complex:
            return randn(*size, dtype=self._dtype)
        return randint(0, 2 if self._dtype == _C.bool else 127, size, dtype=self._dtype)

    def sample(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """The tensor and its properties; None if it is too large or too small."""
        size = self._resolved(self._size, params)
        steps = self._resolved(self._steps, params)
        stored = tuple(a * b for a, b in zip(size, steps, strict=True))
        elements, memory = math.prod(size), math.prod(stored) * self._dtype.itemsize
        if not (self._min_elements or 0) <= elements <= (self._max_elements or elements):
            return None
        if memory > (self._max_allocation_bytes or memory):
            return None
        state = params["random_state"]
        order = list(range(len(size)))
        if len(size) > 1 and state.rand() > self._probability_contiguous:
            order = [int(at) for at in state.permutation(len(size))]
        clean = {k: v for k, v in params.items() if k != "random_state"}
        raw = self._make(tuple(stored[at] for at in order), clean)
        tensor = raw.permute([order.index(at) for at in range(len(size))])
        tensor = tensor[tuple(slice(0, None, step) for step in steps)]
        if self._cuda:
            tensor = tensor.to("cuda")
        return tensor, {
            "numel": elements,
            "shape": tensor.shape,
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor whose shape and density are drawn.

    Args:
        name: its name.
        size: its sizes, numbers or names of parameters.
        min_elements: with fewer elements it is drawn again.
        max_elements: with more elements it is drawn again.
        dim_parameter: the name of the parameter that says how many dimensions it has.
        sparse_dim: the name of the parameter that says how many dimensions are sparse.
        nnz: the name of the parameter that says how many values it has.
        density: the name of the parameter that says which part of the values is there.
        coalesced: the name of the parameter that says whether coordinates are unique.
        dtype: the dtype.
        cuda: whether it is on the device.
    """

    def __init__(
        self,
        name: str,
        size: tuple[Any, ...],
        min_elements: int | None = None,
        max_elements: int | None = None,
        dim_parameter: str | None = None,
        sparse_dim: str | None = None,
        nnz: str | None = None,
        density: str | None = None,
        coalesced: str | None = None,
        dtype: Any = _C.float32,
        cuda: bool = False,
    ) -> None:
        super().__init__(
            name,
            size,
            min_elements=min_elements,
            max_elements=max_elements,
            dim_parameter=dim_parameter,
            dtype=dtype,
            cuda=cuda,
        )
        self._names = (sparse_dim, nnz, density, coalesced)

    def sample(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """The tensor and its properties; None if it is too large or too small."""
        from .... import sparse_coo_tensor, tensor

        size = self._resolved(self._size, params)
        elements = math.prod(size)
        if not (self._min_elements or 0) <= elements <= (self._max_elements or elements):
            return None
        dims, nnz, density, once = (params[n] if n else None for n in self._names)
        dims = min(len(size), 2 if dims is None else int(dims))
        cells = math.prod(size[:dims])
        count = math.ceil(cells * density) if nnz is None and density is not None else nnz or 1
        state = params["random_state"]
        rows = [
            state.randint(0, max(length, 1), size=int(count)).tolist() for length in size[:dims]
        ]
        values = self._make((int(count), *size[dims:]), {})
        made = sparse_coo_tensor(tensor(rows, dtype=_C.int64), values, size)
        made = made.coalesce() if once in (None, True) else made
        return (made.to("cuda") if self._cuda else made), {
            "numel": elements,
            "shape": made.shape,
            "is_coalesced": made.is_coalesced(),
            "sparsity": 1 - made._nnz() / cells if cells else 1.0,
            "sparse_dim": dims,
            "dense_dim": len(size) - dims,
            "is_hybrid": dims < len(size),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters and tensors until all constraints are fulfilled.

    Args:
        parameters: parameters, or lists of them.
        tensors: tensors, or lists of them.
        constraints: functions of all parameters that must be true.
        seed: where the draws begin.

    Raises:
        ValueError: for a name that stands twice.
    """

    def __init__(
        self,
        parameters: list[Any],
        tensors: list[Any],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        import numpy

        self._seed = int(numpy.random.RandomState().randint(0, 2**31)) if seed is None else seed
        self._parameters = _flat(parameters)
        self._tensors = _flat(tensors)
        self._constraints = tuple(constraints or ())
        names = [one.name for one in (*self._parameters, *self._tensors)]
        if len(set(names)) != len(names):
            raise ValueError(f"Repeated names: {sorted(n for n in names if names.count(n) > 1)}")
        self._accepted = self._drawn = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """Draws ``n`` times: tensors by name, what they are like, and parameters.

        Raises:
            ValueError: if a thousand draws fulfil nothing.
        """
        import numpy

        state = numpy.random.RandomState(self._seed)
        for _ in range(n):
            for _ in range(1000):
                self._drawn += 1
                found = self._draw(state)
                if found is not None:
                    break
            else:
                raise ValueError("Failed to generate a set of parameters that fulfil constraints")
            self._accepted += 1
            yield found

    @property
    def rejection_rate(self) -> float:
        """The fraction of the draws that did not fulfil the constraints."""
        return 0.0 if not self._drawn else 1.0 - self._accepted / self._drawn

    def _draw(self, state: Any) -> Any:
        from .... import random

        drawn = {one.name: one.sample(state) for one in self._parameters}
        params = {name: _followed(value, drawn) for name, value in drawn.items()}
        if not all(constraint(**params) for constraint in self._constraints):
            return None
        tensors, likes = {}, {}
        with random.fork_rng():
            random.manual_seed(int(state.randint(0, 2**31)))
            for one in self._tensors:
                found = one.sample({**params, "random_state": state})
                if found is None:
                    return None
                tensors[one.name], likes[one.name] = found
        return tensors, likes, params


def _flat(given: list[Any]) -> list[Any]:
    lists = [one if isinstance(one, (list, tuple)) else [one] for one in given]
    return list(itertools.chain.from_iterable(lists))


def _followed(value: Any, drawn: dict[str, Any]) -> Any:
    """The value of a parameter, by way of aliases.

    Raises:
        ValueError: for aliases that lead in a circle.
    """
    for _ in range(len(drawn) + 1):
        if not isinstance(value, ParameterAlias):
            return value
        value = drawn[value.alias_to]
    raise ValueError("aliases lead in a circle")
