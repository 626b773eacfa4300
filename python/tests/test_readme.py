"""The README's program in Python runs and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pullback as torch

README = Path(__file__).parents[2] / "README.md"


def test_the_program_of_the_readme_learns() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(program, str(README), "exec"), names)
    assert names["accuracy"].item() > 0.95
    (second,) = torch.autograd.grad(
        torch.autograd.grad((names["a"] ** 3).sum(), names["a"], create_graph=True)[0].sum(),
        names["a"],
    )
    assert second.tolist() == [6.0, 12.0, 18.0]
