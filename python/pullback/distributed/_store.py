"""Stores: names and bytes by which processes find each other, here within one process.

:class:`FileStore` keeps them in a file, which another process may read; :class:`TCPStore` serves
this process alone.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]


class DistError(RuntimeError):
    """Something about processes that train together went wrong."""


class DistBackendError(DistError):
    """A backend failed."""


class DistNetworkError(DistError):
    """The network failed."""


class DistStoreError(DistError):
    """A store failed, or did not get a value in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"a store keeps strings and bytes, not {type(value).__name__}")


class Store:
    """Names with bytes, shared by all holders of the store.

    A class derived from it defines ``_read`` and ``_write``.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._timeout = timedelta(seconds=300)

    def _read(self) -> dict[str, bytes]:
        raise NotImplementedError

    def _write(self, values: dict[str, bytes]) -> None:
        raise NotImplementedError

    def _change(self, change: Callable[[dict[str, bytes]], Any]) -> Any:
        with self._changed:
            values = self._read()
            result = change(values)
            self._write(values)
            self._changed.notify_all()
            return result

    @property
    def timeout(self) -> timedelta:
        """The timeout of :meth:`get` and :meth:`wait`."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long :meth:`get` and :meth:`wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Stores a value."""
        kept = _bytes(value)
        self._change(lambda values: values.__setitem__(key, kept))

    def get(self, key: str) -> bytes:
        """The value of a name, waited for.

        Raises:
            DistStoreError: if it does not come in time.
        """
        self.wait([key])
        with self._changed:
            return self._read()[key]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all names have values.

        Raises:
            DistStoreError: if one does not come in time.
        """
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: self.check(keys), seconds):
                missing = [key for key in keys if not self.check([key])]
                raise DistStoreError(f"Wait timeout: no value of {missing} in {seconds} s")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all names have values."""
        with self._changed:
            values = self._read()
            return all(key in values for key in keys)

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, 0 at first, and gives the sum."""

        def change(values: dict[str, bytes]) -> int:
            total = int(values.get(key, b"0")) + amount
            values[key] = str(total).encode()
            return total

        total: int = self._change(change)
        return total

    def append(self, key: str, value: Any) -> None:
        """Appends bytes to a value."""
        more = _bytes(value)
        self._change(lambda values: values.__setitem__(key, values.get(key, b"") + more))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Keeps a value if the present one (or none, for ``""``) is the expected one.

        Returns:
            The value that the name has afterwards; ``expected_value`` if it has none.
        """
        expected, desired = _bytes(expected_value), _bytes(desired_value)

        def change(values: dict[str, bytes]) -> bytes:
            if values.get(key, b"") == expected:
                values[key] = desired
            return values.get(key, expected)

        result: bytes = self._change(change)
        return result

    def delete_key(self, key: str) -> bool:
        """Forgets a name, and says whether it was there."""
        found: bool = self._change(lambda values: values.pop(key, None) is not None)
        return found

    def num_keys(self) -> int:
        """The number of keys."""
        with self._changed:
            return len(self._read())

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several names, waited for."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Keeps several values.

        Raises:
            ValueError: for another number of values than of names.
        """
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether it has :meth:`append`, :meth:`multi_get` and :meth:`multi_set`: it has."""
        return True


class HashStore(Store):
    """A store in memory, for the threads of a process."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}

    def _read(self) -> dict[str, bytes]:
        return self._values

    def _write(self, values: dict[str, bytes]) -> None:
        self._values = values


class FileStore(Store):
    """A store in a file.

    Args:
        file_name: the file, which is made.
        world_size: how many processes use it; here one, or -1 for any number.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        with self._changed:
            self._write(self._read())

    def _read(self) -> dict[str, bytes]:
        if not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            return {}
        values: dict[str, bytes] = {}
        with open(self.path, "rb") as file:
            for line in file:
                key, _, value = line.rstrip(b"\n").partition(b" ")
                values[bytes.fromhex(key.decode()).decode()] = bytes.fromhex(value.decode())
        return values

    def _write(self, values: dict[str, bytes]) -> None:
        lines = [f"{key.encode().hex()} {value.hex()}\n" for key, value in values.items()]
        with open(self.path, "w", encoding="ascii") as file:
            file.writelines(lines)


class TCPStore(HashStore):
    """A store that other processes would reach by TCP: here this process alone.

    Args:
        host_name: where the server would be.
        port: its port.
        world_size: how many processes use it: one.
        is_master: whether this process is the server: it must be.
        timeout: how long to wait for values.
        wait_for_workers: whether to wait for the others; there are none.

    Raises:
        DistNetworkError: for a server elsewhere, or more processes.
    """

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta | None = None,
        wait_for_workers: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        if not is_master or (world_size is not None and world_size > 1 and wait_for_workers):
            raise DistNetworkError(
                f"TCPStore({host_name!r}, {port}): a process trains alone here, as the master of "
                "a world of one"
            )
        self.host, self.port = host_name, port
        if timeout is not None:
            self.set_timeout(timeout)


class PrefixStore(Store):
    """Another store, in which its names begin with a prefix.

    Args:
        prefix: what is put before a name, with a slash.
        store: the other store.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix = prefix
        self.underlying_store = store
        self._changed = store._changed
        self._timeout = store.timeout

    def _read(self) -> dict[str, bytes]:
        start = f"{self.prefix}/"
        values = self.underlying_store._read().items()
        return {key[len(start) :]: value for key, value in values if key.startswith(start)}

    def _write(self, values: dict[str, bytes]) -> None:
        start = f"{self.prefix}/"
        every = self.underlying_store._read()
        kept = {key: value for key, value in every.items() if not key.startswith(start)}
        self.underlying_store._write(kept | {start + key: value for key, value in values.items()})


def copied(thing: Any) -> Any:
    """The object as another process would get it: a copy by way of a pickle."""
    return pickle.loads(pickle.dumps(thing))
