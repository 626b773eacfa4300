"""Which PyTorch this package stands for, and which version of itself it is.

The package's own version is the one of `Cargo.toml`, compiled into the extension.
"""

from __future__ import annotations

from . import _C, _absent

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "pullback", "rocm", "xpu"]

# The release of PyTorch whose names and behaviour are the reference.
_STANDS_FOR = "2.15.0"

pullback: str = _C._VERSION
__version__ = f"{_STANDS_FOR}+pullback.{pullback}"
debug: bool = _C._IS_DEBUG
# A wheel does not know the commit from which it was made.
git_version = "Unknown"
# None of these is built in.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None

_absent.announce(globals())
