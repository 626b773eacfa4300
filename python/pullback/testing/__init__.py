"""Tools for tests: comparisons that say what differs, random tensors, and searches in texts."""

from .. import _absent
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]

_absent.announce(globals())
