"""Weak references to tensors, and dictionaries whose keys are told apart by ``is``.

A tensor compares by its elements, so that it is no key of an ordinary weak dictionary.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that is equal to others of the same object, whatever ``==`` says of it.

    Args:
        key: the object.
        callback: what is called with the reference when the object is gone.
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self) -> Any:
        """The object; None when it does not exist any more."""
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, theirs = self(), other()
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that does not keep its keys alive, and tells them apart by ``is``.

    Args:
        dict: keys with values.
        ref_type: the class of references to keys.
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        own = weakref.ref(self)

        def remove(gone: Any) -> None:
            there = own()
            if there is not None:
                there.data.pop(gone, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def keyrefs(self) -> list[Any]:
        """References to the keys, some of which may be gone."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """A second dictionary with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


# (PyTorch's tensors need a different kind of reference, Pullback's do not.)
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor: the tensor.

    Raises:
        AssertionError: for what is no tensor.
    """

    ref: WeakIdRef

    def __init__(self, tensor: Any) -> None:
        from .._tensor import Tensor

        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        """The tensor; None when it does not exist any more."""
        return self.ref()
