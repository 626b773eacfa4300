"""Writes `optim_courses.json` and `data_draws.json`, as PyTorch computes them.

Run it with a Python that has PyTorch; the tests only read the files.
"""

from __future__ import annotations

import json
from pathlib import Path

import data_program
import optim_program
import torch

HERE = Path(__file__).parent
VERSION = torch.__version__.split("+")[0]

courses = {
    "torch": VERSION,
    "optimizers": {
        case: {
            gaps: optim_program.optimizer_course(torch, case, gaps == "gaps", "float64")
            for gaps in ("full", "gaps")
        }
        for case in optim_program.OPTIMIZERS
    },
    "long": {
        case: {
            dtype: optim_program.long_course(torch, case, dtype) for dtype in ("float32", "float64")
        }
        for case in optim_program.OPTIMIZERS
    },
    "checkpoints": {
        case: optim_program.checkpoint_course(torch, case)
        for case in optim_program.OPTIMIZERS | optim_program.OTHERS
    },
    "schedules": {
        case: optim_program.schedule_course(torch, case) for case in optim_program.SCHEDULES
    },
    "plateau": {
        f"{mode} {threshold}": optim_program.plateau_course(torch, mode, threshold)
        for mode in ("min", "max")
        for threshold in ("rel", "abs")
    },
}
(HERE / "optim_courses.json").write_text(json.dumps(courses) + "\n")
draws = {"torch": VERSION} | {case: data_program.run(torch, case) for case in data_program.CASES}
(HERE / "data_draws.json").write_text(json.dumps(draws) + "\n")
