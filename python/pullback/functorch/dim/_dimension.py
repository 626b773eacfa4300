"""Dimensions, lists of them, and how they get their names."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from ... import _C
from ._tensor import _Tensor


class DimensionMismatchError(Exception):
    """Dimensions do not fit together."""


class DimensionBindError(Exception):
    """A dimension has another size already, or a list another length."""


class Dim(_Tensor):
    """A dimension. As a tensor it is ``0, 1, ..., size - 1`` along itself.

    Args:
        name: how it is printed.
        size: its size, if that is known; else that of the first dimension it is bound to.
    """

    def __init__(self, name: str, size: int | None = None) -> None:
        self._name = name
        self._size: int | None = None
        self._range: Any = None
        if size is not None:
            self.size = size

    @property  # type: ignore[override]
    def size(self) -> int:
        """How many indices there are.

        Raises:
            ValueError: (on reading) if it is bound to none.
            DimensionBindError: (on writing) if it is bound to another.
        """
        if self._size is None:
            raise ValueError(f"dimension {self._name} is unbound")
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        if self._size is None:
            self._size = size
        elif self._size != size:
            raise DimensionBindError(
                f"Dim '{self._name}' previously bound to a dimension of size {self._size} cannot "
                f"bind to a dimension of size {size}"
            )

    @property
    def is_bound(self) -> bool:
        """Whether the size of the dimension is known."""
        return self._size is not None

    @property
    def dims(self) -> tuple[Any, ...]:
        """The dimension itself alone."""
        return (self,)

    @property
    def _tensor(self) -> Any:
        if self._range is None:
            self._range = _C._VariableFunctions.arange(self.size)
        return self._range

    def __repr__(self) -> str:
        return self._name


class DimList:
    """Several dimensions, whose number may become known only when it is bound.

    Args:
        len_or_dims: how many, or the dimensions (or names for new ones); None if that is not known.
        name: what new ones are called, with a number each.
    """

    def __init__(self, len_or_dims: Any = None, name: str | None = None) -> None:
        self._name = name
        self._dims: tuple[Dim, ...] | None = None
        if isinstance(len_or_dims, int):
            self.bind_len(len_or_dims)
        elif len_or_dims is not None:
            self._dims = tuple(d if isinstance(d, Dim) else Dim(str(d)) for d in len_or_dims)

    @property
    def is_bound(self) -> bool:
        """Whether the number of dimensions is known."""
        return self._dims is not None

    def bind_len(self, size: int) -> None:
        """Says how many there are.

        Raises:
            DimensionBindError: if there is another number already.
        """
        if self._dims is None:
            name = "dim" if self._name is None else self._name
            self._dims = tuple(Dim(f"{name}{at}") for at in range(size))
        elif len(self._dims) != size:
            raise DimensionBindError(
                f"Dimlist has size {len(self._dims)} but it is being bound to size {size}"
            )

    def bind(self, sizes: Iterable[int]) -> None:
        """Says how many there are, and their sizes.

        Raises:
            DimensionBindError: if they are known otherwise.
        """
        sizes = tuple(sizes)
        self.bind_len(len(sizes))
        for dim, size in zip(self, sizes, strict=True):
            dim.size = size

    def _known(self) -> tuple[Dim, ...]:
        if self._dims is None:
            raise DimensionBindError("DimList not bound")
        return self._dims

    def size(self) -> int:
        """The number of dimensions."""
        return len(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __getitem__(self, at: Any) -> Any:
        return self._known()[at]

    def __iter__(self) -> Iterator[Dim]:
        return iter(self._known())

    def __repr__(self) -> str:
        if self._dims is None:
            return f"*{self._name}" if self._name is not None else "<unbound_dimlist>"
        return repr(self._dims)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Runs functions that are given lists of dimensions."""
        return _Tensor.__torch_function__(func, types, args, kwargs)


def dims(n: int | None = None, sizes: Sequence[int | None] | None = None) -> Any:
    """New dimensions, named as the variables that they are assigned to.

    Args:
        n: how many; by default as many as there are ``sizes``, or variables.
        sizes: the size of each, or None for one that is not known.

    Returns:
        One dimension if ``n`` is 1, else a tuple.

    Raises:
        SyntaxError: if nothing says how many.
        ValueError: for another number of sizes.

    Example:
        >>> import pullback as torch
        >>> from pullback.functorch.dim import dims
        >>> i, j = dims()
        >>> torch.arange(6).reshape(2, 3)[i, j].order(j, i).shape
        torch.Size([3, 2])
    """
    return _made("dims", sys._getframe(1), n, sizes, Dim)


def dimlists(n: int | None = None, sizes: Sequence[Any] | None = None) -> Any:
    """New lists of dimensions, named as the variables that they are assigned to.

    Args:
        n: how many; by default as many as there are ``sizes``, or variables.
        sizes: for each its length, its dimensions, or None.

    Returns:
        One list if ``n`` is 1, else a tuple.

    Raises:
        SyntaxError: if nothing says how many.
        ValueError: for another number of sizes.
    """
    return _made("dimlists", sys._getframe(1), n, sizes, lambda name, size: DimList(size, name))


def _made(
    what: str,
    frame: FrameType,
    n: int | None,
    sizes: Sequence[Any] | None,
    make: Callable[[str, Any], Any],
) -> Any:
    names, is_unpacked = _targets(frame.f_code, frame.f_lasti)
    count = n if n is not None else len(sizes) if sizes is not None else len(names)
    if not isinstance(count, int):
        raise TypeError(f"{type(count).__name__!r} object cannot be interpreted as an integer")
    if count < 0 or (count == 0 and n is None):
        raise SyntaxError(
            f"{what}() must be assigned to a sequence of variable names or have argument n "
            "specified"
        )
    if sizes is not None and len(sizes) != count:
        raise ValueError(f"expected {count} sizes but found {len(sizes)}")
    if len(names) != count:
        names = tuple(f"d{at}" for at in range(count))
    sizes = [None] * count if sizes is None else sizes
    made = tuple(make(name, size) for name, size in zip(names, sizes, strict=True))
    return made[0] if count == 1 and not is_unpacked else made


@lru_cache(maxsize=512)
def _targets(code: CodeType, at: int) -> tuple[tuple[str, ...], bool]:
    """The variables that the result of the call at an instruction is assigned to.

    Returns:
        Their names, as far as each is a plain variable, and whether the result is taken apart.
    """
    following = (i for i in dis.get_instructions(code) if i.offset > at and i.opname != "CACHE")
    names: list[str] = []
    wanted = 1
    is_unpacked = False
    for instruction in following:
        if instruction.opname == "UNPACK_SEQUENCE" and not is_unpacked:
            is_unpacked, wanted = True, int(instruction.arg or 0)
        elif instruction.opname.startswith("STORE_FAST_STORE"):
            names.extend(instruction.argval)
        elif instruction.opname in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"):
            names.append(instruction.argval)
        elif instruction.opname not in ("EXTENDED_ARG", "NOP", "PRECALL"):
            break
        if len(names) >= wanted:
            break
    return (tuple(names) if len(names) == wanted else ()), is_unpacked
