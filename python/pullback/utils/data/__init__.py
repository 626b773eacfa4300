"""Data for training loops: datasets, samplers, and the loader that makes batches of them.

`dataset` says what a data set is and combines them, `sampler` in which order its items
come, `collate` how items become a batch, `dataloader` ties them together, in this process
or with worker processes (`multiprocess`, `worker`).
"""

from ... import _absent, _lazy
from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .datapipe import IterDataPipe, MapDataPipe, functional_datapipe
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .info import WorkerInfo, get_worker_info
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]

_lazy.submodules(globals(), "_utils")

_absent.announce(globals())
