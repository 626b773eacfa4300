"""Parts of the data loader under the names of their modules in PyTorch."""

from . import collate as collate
