"""Parts of the data loader under the names of their modules in PyTorch."""

import sys as _sys

from ...._dense import ExceptionWrapper as ExceptionWrapper
from . import collate as collate
from . import fetch as fetch
from . import pin_memory as pin_memory
from . import worker as worker

IS_WINDOWS = _sys.platform == "win32"
# How many seconds PyTorch's loaders wait before they look whether a worker has died; the ones here
# see that by the end of its pipe, and wait for nothing.
MP_STATUS_CHECK_INTERVAL = 5.0
