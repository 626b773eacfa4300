"""A bar of progress: that of the package ``tqdm`` where it is installed, else a line of text."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["tqdm"]


class _Line:
    """Counts what is done, and writes it to the standard error stream."""

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        total: int | None = None,
        disable: bool = False,
        **kwargs: Any,
    ) -> None:
        """Begins; further arguments of the package's bar are taken, and mean nothing here."""
        self.iterable = iterable
        self.total = total
        self.disable = disable
        self.n = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.iterable or ():
            yield item
            self.update(1)
        self.close()

    def update(self, n: int = 1) -> None:
        """Advances the count by ``n``."""
        self.n += n
        if not self.disable:
            share = f" ({100 * self.n / self.total:.0f}%)" if self.total else ""
            sys.stderr.write(f"\r{self.n}{share}")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: only the count is shown."""

    def close(self) -> None:
        """Ends the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _found() -> Any:
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError:
        return _Line


tqdm: Any = _found()
