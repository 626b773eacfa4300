"""Masked tensors under the name of PyTorch's package."""

from __future__ import annotations

from . import core as core
from . import creation as creation
from .core import MaskedTensor as MaskedTensor
from .core import is_masked_tensor as is_masked_tensor
from .creation import as_masked_tensor as as_masked_tensor
from .creation import masked_tensor as masked_tensor
