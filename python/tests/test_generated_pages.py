"""Charts of records, and tables that the generator fills into pages."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pullback._gen import __main__ as command
from pullback._gen import chart, families, part, picture, pytorch_tests

RECORD = """# A record

## Group A: geometric mean 0.50 over 2

| benchmark | PyTorch | pullback | ratio | limit | per |
|---|---|---|---|---|---|
| A.add | 100 ns | 25 ns | 0.25 | - | op |
| A.a<b | 10 us | 20 us | 2.00 | 1 us | op |

## Group E: geometric mean 0.02 over 1

| benchmark | PyTorch | pullback | ratio | limit | per |
|---|---|---|---|---|---|
| E.import | 1.5 s | 29.3 ms | 0.02 | - | process |
"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.md"
    path.write_text(RECORD)
    return path


def places(text: str, tag: str, attribute: str) -> list[float]:
    return [float(node.attrib[attribute]) for node in ElementTree.fromstring(text).iter(SVG + tag)]


def test_a_record_is_read_with_its_groups(record: Path) -> None:
    first, second = chart.read(record)
    assert (first.letter, first.mean, second.letter) == ("A", 0.5, "E")
    assert first.cases == [
        chart.Case("add", "100 ns", "25 ns", 0.25),
        chart.Case("a<b", "10 us", "20 us", 2.0),
    ]


def test_a_record_with_a_row_too_few_is_refused(record: Path) -> None:
    record.write_text(RECORD.replace("| A.add | 100 ns | 25 ns | 0.25 | - | op |\n", ""))
    with pytest.raises(ValueError, match=r"record\.md"):
        chart.read(record)
    record.write_text("# Nothing\n")
    with pytest.raises(ValueError, match=r"record\.md"):
        chart.read(record)


def test_the_axis_is_logarithmic_and_bars_begin_at_equal_times(record: Path) -> None:
    first, _ = chart.read(record)
    text = chart.bars(first)
    # (The first rectangle is the background, whose width is a share.)
    bars = list(ElementTree.fromstring(text).iter(SVG + "rect"))[1:]
    (faster, slower) = [(float(b.attrib["x"]), float(b.attrib["width"])) for b in bars]
    # A quarter is twice as far from one as double is, on the other side.
    assert faster[0] + faster[1] == pytest.approx(slower[0], abs=0.2)
    assert faster[1] == pytest.approx(2 * slower[1], abs=0.3)
    assert bars[0].attrib["fill"] != bars[1].attrib["fill"]
    assert "a&lt;b" in text


def test_the_overview_has_a_dot_for_each_case(record: Path) -> None:
    groups = chart.read(record)
    dots = places(chart.overview(groups), "circle", "cx")
    assert len(dots) == 3
    # Sorted within a group: the quarter is left of the double, the import left of both.
    assert dots[2] < dots[0] < dots[1]


def test_the_table_of_groups_names_best_worst_and_what_is_slower(record: Path) -> None:
    text = part.recorded(chart.read(record))
    assert "| 2 | 0.50 | `add` 0.25 | `a<b` 2.00 |" in text
    assert "slower: `A.a<b` (2.00)." in text


def test_parts_are_filled_and_a_page_without_their_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n<!-- begin x: written by `cargo xtask gen` -->\nold\n<!-- end x -->\nafter\n"
    )
    filled = part.filled(page, {"x": "new\n"})
    assert "\nnew\n" in filled
    assert "old" not in filled
    assert filled.endswith("<!-- end x -->\nafter\n")
    page.write_text(filled)
    assert part.filled(page, {"x": "new\n"}) == filled
    with pytest.raises(ValueError, match=r"page\.md has no place for the part `y`"):
        part.filled(page, {"y": ""})


def test_the_counts_of_all_parts_are_those_of_all_names() -> None:
    rows = part.areas().partition("\n\n")[0].splitlines()[2:]
    counts = [[int(cell) for cell in row.split("|")[2:5]] for row in rows]
    *areas, total = counts
    assert [sum(column) for column in zip(*areas, strict=True)] == total
    assert sum(total) > 4000


def test_pictures_are_the_same_whenever_they_are_drawn() -> None:
    assert picture.texts() == picture.texts()
    assert set(picture.PICTURES) <= {path.name for path in command.pages()}


def test_methods_are_named_as_the_macro_names_them(tmp_path: Path) -> None:
    (tmp_path / "area").mkdir()
    (tmp_path / "area" / "family.rs").write_text(
        "//! Sums and more. Not shown.\n\n"
        '#[op("sum.dim(Tensor self, int[] dim) -> Tensor", out)]\nimpl SumDim {\n}\n'
        '#[op("fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)")]\nimpl Fill {\n}\n'
        '#[op(\n    "t(Tensor(a) self) -> Tensor(a)", inplace = method,\n    method = flipped\n)]\n'
        "#[allow(x)]\nimpl T {\n}\n"
        '#[op("inner(Tensor self) -> Tensor", internal)]\nimpl Inner {\n}\n'
        '#[op("zeros(int[] size) -> Tensor")]\nimpl Zeros {\n}\n'
        '#[op("cat(Tensor[] tensors) -> Tensor")]\nimpl Cat {\n}\n'
    )
    *_, line = families.text(tmp_path).splitlines()
    names = ("fill_", "flipped", "sum_dim")
    links = ", ".join(f"[`{name}`](crate::Tensor::{name})" for name in names)
    assert line == f"- **Sums and more**: {links}"
    with pytest.raises(ValueError, match="no op with a method"):
        families.text(tmp_path / "area" / "nothing")


def test_counts_of_pytorchs_tests_are_added_up_and_gaps_have_reasons(tmp_path: Path) -> None:
    path = tmp_path / "tests.tsv"
    path.write_text(
        "# Recorded.\nfile\tpullback\tpytorch\twhy\na.py\t3\t5\tdevices\nb.py\t2\t2\t\n"
    )
    lines = pytorch_tests.table(path).splitlines()
    assert lines[2:4] == ["| `a.py` | 3 | 5 | devices |", "| `b.py` | 2 | 2 |  |"]
    assert lines[4:] == ["| all | 5 | 7 | |"]
    for wrong in ("a.py\t3\t5\t", "a.py\tmany\t5\tx", "a.py\t3\t5", "a.py\t5\t5\t\na.py\t5\t5\t"):
        path.write_text(f"file\tpullback\tpytorch\twhy\n{wrong}\n")
        with pytest.raises(ValueError, match=r"tests\.tsv"):
            pytorch_tests.read(path)
    path.write_text("file\tours\n")
    with pytest.raises(ValueError, match="columns"):
        pytorch_tests.read(path)
