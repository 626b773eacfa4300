"""``python -m pullback``: runs a PyTorch program on this package, as ``python`` runs programs.

``python -m pullback SCRIPT [ARGUMENT ...]``, ``-m MODULE [ARGUMENT ...]`` and
``-c TEXT [ARGUMENT ...]``, in which ``import torch`` means pullback; so it does in processes that
the program starts.

``python -m pullback diff A B`` says where two runs part that :func:`pullback.record` has recorded,
and ``python -m pullback recorder`` writes out the module that records programs on PyTorch itself.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

_USAGE = """\
usage: python -m pullback SCRIPT | -m MODULE | -c TEXT [ARGUMENT ...]
       python -m pullback diff FIRST SECOND [--rtol NUMBER]
       python -m pullback recorder"""


def main() -> None:
    """Runs the program with ``import torch`` meaning pullback."""
    if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c") and len(sys.argv) < 3):
        sys.exit(_USAGE)
    if sys.argv[1] == "diff":
        from pullback._record.compare import main as compare

        sys.exit(compare(sys.argv[2:]))
    if sys.argv[1] == "recorder":
        from pullback._record import recorder

        with open(recorder.__file__, encoding="utf-8") as source:
            print(source.read(), end="")
        return
    _run(_program())


def _program() -> Callable[[], Any]:
    """The program to run; its own arguments are left in ``sys.argv``."""
    first = sys.argv[1]
    if first == "-m":
        module = sys.argv[2]
        sys.argv = sys.argv[2:]
        return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)
    if first == "-c":
        text = sys.argv[2]
        sys.argv = ["-c", *sys.argv[3:]]
        return lambda: exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
    if not os.path.exists(first):
        sys.exit(f"no such file: {first}")
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(first))
    return lambda: runpy.run_path(first, run_name="__main__")


def _run(program: Callable[[], Any]) -> None:
    import pullback

    pullback.as_torch()
    program()


# (Except where a child process of the program looks for its main module.)
if __name__ == "__main__":
    main()
