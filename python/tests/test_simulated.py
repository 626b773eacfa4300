"""The tests of simulated devices, in a process of their own: there is no way back from these."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_simulated_devices() -> None:
    folder = Path(__file__).parent / "simulated"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None, run.stdout
    assert int(passed[1]) >= 40, run.stdout
