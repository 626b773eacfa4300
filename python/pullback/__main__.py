"""``python -m pullback SCRIPT [ARGUMENT ...]``: runs a PyTorch program on this package."""

from __future__ import annotations

import os
import runpy
import sys

import pullback
from pullback import _absent


def main() -> None:
    """Runs the script with ``import torch`` meaning pullback."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pullback SCRIPT [ARGUMENT ...]")
    script = sys.argv[1]
    if not os.path.exists(script):
        sys.exit(f"no such file: {script}")
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    pullback.as_torch()
    try:
        runpy.run_path(script, run_name="__main__")
    except AttributeError as error:
        reason = _absent.reason_of(error)
        # (Exceptions have notes from Python 3.11 on.)
        if reason is not None and hasattr(error, "add_note"):
            error.add_note(reason)
        raise


main()
