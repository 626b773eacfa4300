"""The lines that errors name, read in the ways of interpreters whose frames have another form.

`PULLBACK_FRAMES` lets the extension take them: public functions in place of the interpreter's
structures, and with `lines` what CPython 3.10 can tell. All tests of named lines run so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = ["test_blame.py", "test_blame_frame.py", "test_blame_mark.py"]


@pytest.mark.parametrize("way", ["functions", "lines"])
def test_the_tests_of_named_lines_pass(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES],
        cwd=HERE,
        env={**os.environ, "PULLBACK_FRAMES": way},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


HOLDS = """
import gc, sys, types, weakref
import pullback as torch

def exp_of(x):
    return x.exp()

x = torch.ones(3, requires_grad=True)
code = exp_of.__code__.replace(co_filename="<gone>")
gone = weakref.ref(code)
y = types.FunctionType(code, globals())(x)
del code
print(gone())
"""


@pytest.mark.parametrize("way", ["", "functions", "lines"])
def test_no_code_object_is_kept_alive(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOLDS],
        env={**os.environ, "PULLBACK_FRAMES": way},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "None"
