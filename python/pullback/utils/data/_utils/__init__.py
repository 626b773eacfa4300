"""Parts of the data loader under the names of their modules in PyTorch."""

import atexit as _atexit
import importlib.util as _importlib_util
import sys as _sys

from ...._dense import ExceptionWrapper as ExceptionWrapper
from . import collate as collate
from . import fetch as fetch
from . import pin_memory as pin_memory
from . import signal_handling as signal_handling
from . import worker as worker

IS_WINDOWS = _sys.platform == "win32"
# How many seconds PyTorch's loaders wait before they look whether a worker has died; the ones here
# see that by the end of its pipe, and wait for nothing.
MP_STATUS_CHECK_INTERVAL = 5.0
HAS_NUMPY = _importlib_util.find_spec("numpy") is not None
# Whether the interpreter is about to end, when processes and queues may be gone already.
python_exit_status = False


def _set_python_exit_flag() -> None:
    """Says that the interpreter is about to end."""
    global python_exit_status
    python_exit_status = True


_atexit.register(_set_python_exit_flag)
