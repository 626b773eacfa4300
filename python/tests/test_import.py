"""What the import of the package loads: each module once, and no more than it needs."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys

class Counting:
    found = {}

    def find_spec(self, name, path=None, target=None):
        self.found[name] = self.found.get(name, 0) + 1

sys.meta_path.insert(0, Counting())
import pullback
print(json.dumps(Counting.found))
"""


def looked_for_by_the_import() -> dict[str, int]:
    """How often a process of its own looks for each of the modules for ``import pullback``."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return {name: count for name, count in found.items() if name.startswith("pullback")}


def test_loads_each_module_once() -> None:
    found = looked_for_by_the_import()
    assert found["pullback"] == 1
    assert not {name: count for name, count in found.items() if count > 1}


def test_leaves_the_explanation_of_errors_to_errors() -> None:
    assert "pullback._blame" not in looked_for_by_the_import()
