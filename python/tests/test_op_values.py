"""Every op of the table gives what PyTorch gives: results, dtypes, gradients, forms and refusals.

The numbers of PyTorch were recorded (`recorded/record_ops.py`). A row of the table that the
library has no function for is not tested here: `cargo xtask coverage` counts it as missing. What
is known to differ is in `op_table/failing.tsv`, row by row and column by column with the reason;
a line there that is no longer true is a failure too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from op_table.call import DTYPES, Input, shown
from op_table.difference import differences
from op_table.judge import COLUMNS, DESIGN_COLUMNS, exists, faults, known_faults
from op_table.observe import is_meant
from op_table.record import needs_gpu, recorded
from op_table.row import rows
from op_table.table import table

import pullback

ROWS, OPS = rows(), table()
PRESENT = [name for name in ROWS if not needs_gpu(name) and exists(pullback, OPS[name])]
KNOWN = known_faults()


@pytest.mark.parametrize("name", PRESENT)
def test_op_gives_what_pytorch_gives(name: str) -> None:
    found = faults(pullback, ROWS[name], OPS[name])
    known = KNOWN.get(name, {})
    unknown = [fault for fault in found if fault.column not in known]
    assert not unknown, "\n".join(str(fault)[:300] for fault in unknown[:12])
    mended = known.keys() - {fault.column for fault in found}
    assert not mended, f"take {', '.join(sorted(mended))} of {name} out of failing.tsv"


def test_known_faults_name_rows_columns_and_reasons() -> None:
    for name, columns in KNOWN.items():
        assert name in PRESENT
        assert columns.keys() <= set(COLUMNS)
        assert all(fault.reason for fault in columns.values())


def test_a_result_that_differs_on_purpose_has_a_test_that_shows_it_right() -> None:
    for name, columns in KNOWN.items():
        for column, fault in columns.items():
            if fault.is_intended and column not in DESIGN_COLUMNS:
                file, _, test = fault.test.partition("::")
                source = (Path(__file__).parent / file).read_text()
                assert f"\ndef {test}(" in source, (name, column, fault.test)
            else:
                assert not fault.test


def test_every_row_is_in_the_table_and_recorded() -> None:
    assert OPS.keys() == ROWS.keys() == recorded().keys()


@pytest.mark.parametrize("name", OPS)
def test_record_is_of_the_calls_in_the_table(name: str) -> None:
    op, record = OPS[name], recorded()[name]
    assert record["texts"] == [shown(call) for call in op.calls], "run recorded/record_ops.py"
    for call, seen in zip(op.calls, record["calls"], strict=True):
        assert set(seen) == {dtype for dtype in DTYPES if is_meant(call, dtype)}


def test_inputs_are_the_same_numbers_in_every_floating_dtype() -> None:
    for name in ("f16", "bf16", "f32"):
        coarse = Input((64,)).build(pullback, name).tolist()
        assert coarse == Input((64,)).build(pullback, "f64").tolist()


def test_a_wrong_element_a_lost_gradient_and_a_wrong_error_are_differences() -> None:
    tensor = {"dtype": "f64", "shape": [2], "values": [1.0, 2.0]}
    right = {"kind": "Tensor", "results": [tensor], "gradients": [tensor]}
    wrong = {**right, "results": [{**tensor, "values": [1.0, 2.0 + 1e-8]}]}
    assert [aspect for aspect, _ in differences(wrong, right)] == ["values"]
    assert [aspect for aspect, _ in differences({**right, "gradients": [None]}, right)] == [
        "autograd"
    ]
    assert [aspect for aspect, _ in differences(right, {"error": "IndexError"})] == ["accepted"]
    assert [aspect for aspect, _ in differences({"error": "TypeError"}, right)] == ["refused"]
    different = differences({"error": "RuntimeError"}, {"error": "NotImplementedError"})
    assert [aspect for aspect, _ in different] == ["class of error"]
    assert not list(differences({"error": "NotImplementedError"}, {"error": "RuntimeError"}))
    assert not list(differences(right, right))
