"""What the import of the package loads: each module once, and no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter


def loaded_by_the_import() -> Counter[str]:
    """How often a process of its own loads each module for ``import pullback``."""
    command = [sys.executable, "-X", "importtime", "-c", "import pullback"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return Counter(line.rsplit("|", 1)[1].strip() for line in lines[1:])


def test_loads_each_module_once() -> None:
    loaded = loaded_by_the_import()
    assert loaded["pullback"] == 1, "the interpreter reports no imports"
    assert not {name: count for name, count in loaded.items() if count > 1}


def test_leaves_the_explanation_of_errors_to_errors() -> None:
    assert "pullback._blame" not in loaded_by_the_import()
