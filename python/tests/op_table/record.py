"""What the reference does with every call of the table, kept in compressed files beside the
tests.

A file per module of the table, `recorded/ops/<module>.json.xz`. Floating numbers are kept to the
digits that comparisons look at; of errors the class alone; of method, in-place and `out=` forms
whether they give what the function gives.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

from op_table.call import DTYPES, Call, Input, Library, Op, shown
from op_table.difference import form_differs
from op_table.observe import Observation, is_meant, observed, observed_form
from op_table.table import FAMILIES

FOLDER = Path(__file__).parent.parent / "recorded" / "ops"
FORMS = ("method", "inplace", "out")
# The dtypes in which forms are tried: the first that the op takes, and integers.
FORM_DTYPES = ("f64", "f32", "c64", "i64", "bool")
DIGITS = {"f64": 13, "c128": 13, "f32": 9, "c64": 9, "f16": 6, "bf16": 6}
GOOD = "="


def rounded(value: Any, dtype: str = "") -> Any:
    """An observation with its numbers cut to the digits that matter, and without messages."""
    if isinstance(value, dict):
        dtype = value.get("dtype", dtype)
        return {key: rounded(item, dtype) for key, item in value.items() if key != "message"}
    if isinstance(value, list):
        return [rounded(item, dtype) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS.get(dtype, 13)}g}")
    return value


def form_dtypes(seen: dict[str, Observation]) -> list[str]:
    """The dtypes in which a call's forms are tried."""
    taken = [dtype for dtype in FORM_DTYPES if dtype in seen and "error" not in seen[dtype]]
    return [dtype for dtype in taken if dtype == taken[0] or dtype == "i64"]


def has_receiver(op: Op, call: Call) -> bool:
    """Whether the call has a tensor where a method would be called on it."""
    return len(call.args) > op.receiver and isinstance(call.args[op.receiver], Input)


def form_outcome(
    lib: Library, op: Op, call: Call, dtype: str, form: str, plain: Observation
) -> str:
    """Whether a form gives what the function gives; else the class of error, or the difference."""
    seen = observed_form(lib, op, call, dtype, form)
    if "error" in seen:
        return f"{seen['error']}: {seen['message']}"
    difference = form_differs(seen, plain, call.determined)
    return difference or GOOD


def forms_of(
    lib: Library, op: Op, call: Call, seen: dict[str, Observation]
) -> dict[str, dict[str, str]]:
    """The outcomes of a call's forms, by dtype and form."""
    outcomes: dict[str, dict[str, str]] = {}
    for dtype in form_dtypes(seen):
        tried = [form for form in FORMS if form == "out" or has_receiver(op, call)]
        outcomes[dtype] = {
            form: form_outcome(lib, op, call, dtype, form, seen[dtype]) for form in tried
        }
    return outcomes


def recorded_op(lib: Library, op: Op) -> dict[str, Any]:
    """All observations of an op."""
    calls, forms = [], []
    for call in op.calls:
        seen = {dtype: observed(lib, op, call, dtype) for dtype in DTYPES if is_meant(call, dtype)}
        calls.append(rounded(seen))
        outcomes = forms_of(lib, op, call, seen)
        # What the reference gives where a form differs or is refused binds nobody.
        forms.append({d: [form for form in f if f[form] == GOOD] for d, f in outcomes.items()})
    return {"texts": [shown(call) for call in op.calls], "calls": calls, "forms": forms}


def file_of(module: Any) -> Path:
    """The file of a module of the table."""
    return FOLDER / f"{module.__name__.rpartition('.')[2]}.json.xz"


def write(lib: Library) -> None:
    """Records every module of the table with the library, which must be the reference."""
    FOLDER.mkdir(exist_ok=True)
    for module in FAMILIES:
        seen = {op.name: recorded_op(lib, op) for op in module.ops()}
        record = {"library": f"torch {lib.__version__}", "ops": seen}
        text = json.dumps(record, separators=(",", ":"), sort_keys=True)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        file_of(module).write_bytes(packed)
        print(f"{file_of(module).name}: {len(seen)} ops, {len(packed)} bytes")


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """What was recorded, by op."""
    every: dict[str, dict[str, Any]] = {}
    for module in FAMILIES:
        every |= json.loads(lzma.decompress(file_of(module).read_bytes()))["ops"]
    return every


def needs_gpu(name: str) -> bool:
    """Whether the reference on a CPU refuses every call of an op in every dtype."""
    seen = [observation for call in recorded()[name]["calls"] for observation in call.values()]
    return all("error" in observation for observation in seen)
