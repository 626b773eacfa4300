"""The benchmark's suite: what it makes of times, and that its cases still run.

Nothing is measured here. The cases run once each on this library; the arithmetic of comparisons,
records and kinds of processors is checked on made-up runs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pullback

BENCHES = Path(__file__).parents[2] / "benches"
sys.path.insert(0, str(BENCHES))

from suite import catalogue, compare, measure, processor, record  # noqa: E402
from suite.case import Case, Cost, Manner  # noqa: E402
from suite.limit import least_nanoseconds  # noqa: E402
from suite.result import Measurement, Run, Status  # noqa: E402

QUICK = ["--repeats=1", "--min-time=1e-9"]
ONCE = measure.Effort(repeats=1, seconds=1e-9)
HERE = processor.Processor("amd-zen4-avx512", "AMD EPYC, 2 processors, Linux x86_64")


def groups(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHES / "groups.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# A few of each group that take little: of group A all but the deep graph, which takes seconds.
RUNNING = (
    r"^A\.(?!deep)|^B\.64k|^B\.(sort_rows|nonzero)|^C\.matmul\.f32\.(16|64)$|^C\.linear\."
    r"|^C\.linalg\.batched|^C\.linalg\.det|^D\.(mlp_digits|hessian50)|^E\.import"
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "pullback.json"
    done = groups("measure", "pullback", str(path), f"--only={RUNNING}", *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def test_cases_of_every_group_run(measured: Path) -> None:
    run = Run.read(measured)
    assert list(run.measurements) == [case.name for case in catalogue.selected(RUNNING)]
    assert {name[0] for name in run.measurements} == set(catalogue.GROUPS)
    failed = {name: one.why for name, one in run.measurements.items() if one.status != "ok"}
    assert failed == {}
    assert all(one.shortest and one.median for one in run.measurements.values())
    losses = run.measurements["D.mlp_digits"].check
    assert isinstance(losses, list)
    assert losses[-1] < losses[0]
    assert run.measurements["C.matmul.f32.64"].check is not None


def test_a_run_compared_with_itself_has_ratio_one(measured: Path, tmp_path: Path) -> None:
    kept = tmp_path / "comparison.json"
    done = groups(
        "compare", "--ours", str(measured), "--theirs", str(measured), "--json", str(kept)
    )
    assert done.returncode == 0, done.stderr
    assert "group A (overhead): 1.000" in done.stdout
    assert "differs" not in done.stdout
    again = groups(
        *("compare", "--ours", str(measured), "--theirs", str(measured), "--against", str(kept))
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1.000 -> 1.000 (1.000x)" in again.stdout
    assert groups("find", str(kept)).returncode == 0
    assert "threads" in groups("find", str(kept), "--threads=2").stderr


def test_a_record_that_is_not_there_is_said_before_measuring() -> None:
    done = groups("find", "no-such-record.json")
    assert done.returncode == 1
    assert "no-such-record.json" in done.stderr


def test_a_record_of_another_processor_is_refused_before_measuring(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(record.Record("made-up-kind", "a machine", 1, "wall", {}).text())
    done = groups("find", str(other))
    assert done.returncode == 1
    assert "other.json is of made-up-kind, this processor is" in done.stderr


def test_every_recorded_case_is_in_the_catalogue() -> None:
    for path in record.FOLDER.glob("*.json"):
        kept = record.Record.read(path)
        assert set(kept.cases) <= set(catalogue.cases()), path.name
        assert path.stem == f"{kept.kind}-t{kept.threads}"


def repeated(action: Callable[[], Any], **options: Any) -> Case:
    return Case("A.made_up", lambda inputs: action, **options)


def test_what_a_library_lacks_is_noted_with_the_reason() -> None:
    case = repeated(lambda: SimpleNamespace().absent)
    one = measure.measure_here(pullback, case, ONCE)
    assert one.status is Status.MISSING
    assert "absent" in one.why


def test_a_case_that_takes_too_long_is_given_up() -> None:
    case = repeated(lambda: time.sleep(60))
    one = measure.measure_here(pullback, case, measure.Effort(timeout=1))
    assert one.status is Status.TIMEOUT


def test_a_process_that_dies_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    died = subprocess.CompletedProcess([], -11, "", "stack overflow")
    monkeypatch.setattr(measure.subprocess, "run", lambda *words, **options: died)
    case = catalogue.cases()["A.deep1e6"]
    version, one = measure.measure_apart("pullback", case, ONCE, "1.0")
    assert (version, one.status) == ("1.0", Status.CRASH)
    assert "-11" in one.why
    assert "stack overflow" in one.why


def test_times_are_per_unit() -> None:
    one = measure.repeated(lambda calls: calls * 1e-6, 10, 3, units=100)
    assert one.shortest == pytest.approx(10.0)
    assert one.median == pytest.approx(10.0)


def test_the_limit_is_that_of_memory_or_of_arithmetic() -> None:
    case = Case("C.made_up", lambda inputs: list, units=10, cost=Cost(12, 4000))
    assert least_nanoseconds(case, {"triad": 24.0, "f32": 100.0}) == pytest.approx(4.0)
    assert least_nanoseconds(case, {"triad": 2.0, "f32": 100.0}) == pytest.approx(6.0)
    assert least_nanoseconds(case, {"f64": 100.0}) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "close"),
    [
        (1.0, 1.001, True),
        (1.0, 1.01, False),
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 3.0], False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (float("inf"), float("inf"), True),
        (None, 1.0, True),
        (0.0, 1e-10, True),
    ],
)
def test_results_are_the_same_but_for_rounding(ours: Any, theirs: Any, close: bool) -> None:
    assert compare.is_close(ours, theirs, 2e-3) is close


def run_of(library: str, **times: float | None) -> Run:
    run = Run(library, "2.15.0", 1, "3.11.7")
    for name, time_of in times.items():
        status = Status.OK if time_of else Status.CRASH
        one = Measurement(status, shortest=time_of, median=time_of, check=1.0)
        run.measurements[name.replace("_", ".")] = one
    return run


def table_of(theirs: dict[str, Any], *ours: dict[str, Any]) -> list[compare.Row]:
    reference = [run_of("torch", **theirs)] * len(ours)
    return compare.rows([run_of("pullback", **one) for one in ours], reference, {})


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    theirs = {"A_add": 100.0}
    (row,) = table_of(theirs, {"A_add": 50.0}, {"A_add": 20.0}, {"A_add": 900.0})
    assert row.ratio == 0.5
    (row,) = table_of(theirs, {"A_add": None}, {"A_add": 20.0})
    assert row.ratio == 0.2


def test_differing_results_and_failures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ours = run_of("pullback", B_add=50.0, B_exp=None, B_randn=1.0)
    ours.measurements["B.add"].check = 2.0
    ours.measurements["B.randn"].check = 2.0
    ours.measurements["B.exp"].why = "exit status -11"
    theirs = run_of("torch", B_add=100.0, B_exp=1.0, B_randn=1.0)
    table = compare.rows([ours], [theirs], {})
    compare.show(table, "pullback", "torch", 2e-3)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "differs: 1.0 2.0" in line] == ["B.add"]
    assert "B.exp: pullback: crash: exit status -11" in lines
    assert any("group B (bandwidth): 0.707 over 2" in line for line in lines)


def record_of(table: list[compare.Row]) -> record.Record:
    ours, theirs = run_of("pullback"), run_of("torch")
    return record.of_rows(table, ours, theirs, {"triad": 20.0}, "wall", HERE)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = record_of(table_of({"A_add": 100.0, "A_mul": 100.0}, {"A_add": 10.0, "A_mul": None}))
    assert list(kept.cases) == ["A.add"]
    path = tmp_path / "amd-zen4-avx512-t1.json"
    path.write_text(kept.text())
    assert record.Record.read(path) == kept
    assert sum('"A.add"' in line for line in kept.text().splitlines()) == 1
    path.write_text("{}")
    with pytest.raises(record.RecordError, match="no record"):
        record.Record.read(path)


def test_a_part_that_is_measured_again_leaves_the_rest_of_a_record() -> None:
    theirs = {"A_add": 100.0, "A_mul": 100.0}
    old = record_of(table_of(theirs, {"A_add": 10.0, "A_mul": 10.0}))
    new = record_of(table_of({"A_add": 100.0}, {"A_add": 20.0}))
    both = record.updated(old, new)
    assert {name: entry.ratio for name, entry in both.cases.items()} == {"A.add": 0.2, "A.mul": 0.1}
    new.versions["torch"] = "2.16.0"
    with pytest.raises(record.RecordError, match="another version"):
        record.updated(old, new)


MANY = [f"A_{name}" for name in ("add", "mul", "neg", "exp", "relu")]


def changes(ours: dict[str, Any]) -> record.Changes:
    theirs = dict.fromkeys([*MANY, "B_add"], 100.0)
    old = record_of(table_of(theirs, dict.fromkeys(MANY, 10.0) | {"B_add": 90.0}))
    asked = {name: theirs[name] for name in ours}
    return record.changes(old, table_of(asked, ours), 1.1, 1.05, 2e-3)


def test_one_slower_case_is_listed_and_the_mean_of_its_group_is_judged() -> None:
    found = changes(dict.fromkeys(MANY, 10.0) | {"A_add": 11.5, "A_mul": 9.0, "B_add": 90.0})
    assert not found.is_worse
    assert [line.split()[0:2] for line in found.lines][:2] == [
        ["slower:", "A.add"],
        ["faster:", "A.mul"],
    ]
    found = changes(dict.fromkeys(MANY, 10.7) | {"B_add": 90.0})
    assert found.is_worse
    (worse,) = (line for line in found.lines if line.endswith("WORSE"))
    assert worse.startswith("group A")


def test_the_mean_of_a_few_cases_is_judged_as_a_single_one() -> None:
    assert not changes({"A_add": 10.7}).is_worse
    assert changes({"A_add": 11.5}).is_worse


def test_a_case_that_can_no_longer_be_measured_is_worse() -> None:
    found = changes({"A_add": None, "A_mul": 10.0})
    assert found.is_worse
    assert "no longer measured: A.add" in found.lines
    # One that was not asked for says nothing.
    assert not changes({"A_mul": 10.0}).is_worse


AMD = "vendor_id : AuthenticAMD\ncpu family : {}\nmodel : {}\nflags : fpu sse2 avx2 {}"
INTEL = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : {}\nstepping : {}\nflags : avx2 {}"
ARM = "CPU implementer : {}\nCPU part : {}\nFeatures : fp asimd {}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (AMD.format(25, 17, "avx512f"), "amd-zen4-avx512"),
        (AMD.format(25, 1, ""), "amd-zen3-avx2"),
        (AMD.format(26, 2, "avx512f"), "amd-zen5-avx512"),
        (AMD.format(99, 2, ""), "amd-family99-model2-avx2"),
        (INTEL.format(143, 8, "avx512f amx_tile"), "intel-sapphirerapids-amx"),
        (INTEL.format(85, 7, "avx512f"), "intel-cascadelake-avx512"),
        (INTEL.format(250, 1, ""), "intel-family6-model250-avx2"),
        (ARM.format("0x41", "0xd40", "sve"), "arm-neoverse-v1-sve"),
        (ARM.format("0x41", "0xfff", ""), "arm-part0xfff-neon"),
        (ARM.format("0x61", "0x022", ""), "apple-part0x022-neon"),
        ("model name : Apple M2 Pro", "apple-m2-pro"),
        ("vendor_id : A Vendor/../Name", "a-vendor-name"),
        ("", "unknown"),
    ],
)
def test_the_kind_of_a_processor_is_a_readable_name(text: str, kind: str) -> None:
    assert processor.kind_of(text) == kind


def test_manners_tell_which_cases_have_a_process_of_their_own() -> None:
    by_manner = {manner: [] for manner in Manner}
    for case in catalogue.cases().values():
        by_manner[case.manner].append(case.name)
    assert by_manner[Manner.ONCE] == ["A.deep1e6"]
    assert all(name.startswith("D.") for name in by_manner[Manner.PROGRAM])
    assert by_manner[Manner.OUTSIDE] == ["E.import", "E.size"]
