"""Fetchers under the names of PyTorch's module."""

from ..fetch import IterableFetcher as _IterableDatasetFetcher
from ..fetch import MapFetcher as _MapDatasetFetcher

__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]
