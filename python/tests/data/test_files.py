"""Safetensors files and pictures of graphs."""

from __future__ import annotations

import json
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.utils import graph, safetensors
from pullback.utils.graph_layout import lay_out


def file_of(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    tensors = {
        "weights": torch.arange(6, dtype=torch.float32).reshape(2, 3).t(),
        "half": torch.tensor([1.5, -2.25], dtype=torch.float16),
        "brain": torch.tensor([1.5, -3.0], dtype=torch.bfloat16),
        "wide": torch.tensor([0.1], dtype=torch.float64),
        "flags": torch.tensor([True, False]),
        "bytes": torch.tensor([0, 255], dtype=torch.uint8),
        "short": torch.tensor([-3], dtype=torch.int16),
        "scalar": torch.tensor(-7),
        "empty": torch.zeros(0, 4),
        "turned": torch.tensor([1 + 2j], dtype=torch.complex64),
        "ünïcode": torch.ones(1, requires_grad=True),
    }
    path = tmp_path / "all.safetensors"
    safetensors.save_file(tensors, path, {"made by": "a test"})
    found = safetensors.load_file(path)
    assert set(found) == set(tensors)
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype, name
        assert torch.equal(found[name], value.detach()), name
    assert safetensors.load_metadata(path) == {"made by": "a test"}
    assert [item.name for item in tmp_path.iterdir()] == ["all.safetensors"]


def test_the_bytes_are_those_of_the_format() -> None:
    content = safetensors.save({"a": torch.tensor([1.0])})
    length = struct.unpack("<Q", content[:8])[0]
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length]) == {"a": entry()}
    assert content[8 + length :] == struct.pack("<f", 1.0)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "too few for a header length"),
        (b"12345678", "does not fit a file of 8"),
        (file_of(b"{"), "not valid JSON"),
        (file_of(b"\xff"), "not valid JSON"),
        (file_of([]), "should be a JSON object"),
        (file_of(b'{"a": 1, "a": 2}'), "'a' appears twice"),
        (file_of({"a": 3}), "tensor 'a': expected dtype"),
        (file_of({"a": entry()}), "take 4 bytes, but the file holds 0"),
        (file_of({"a": entry()}, b"12345"), "but the file holds 5"),
        (file_of({"a": entry(dtype="F3")}, b"1234"), "tensor 'a': unknown dtype 'F3'"),
        (file_of({"a": entry(shape=[-1])}, b"1234"), "tensor 'a': invalid shape"),
        (file_of({"a": entry(shape=[2])}, b"1234"), "takes 8 bytes"),
        (file_of({"a": entry(shape=[2**62, 4])}, b"1234"), "takes 73786976294838206464 bytes"),
        (file_of({"a": entry(shape=[0, 2**62], data_offsets=[0, 0])}), "multiply beyond 2^59"),
        (file_of({"a": entry(data_offsets=[4, 0])}, b"1234"), "give -4"),
        (file_of({"a": entry(), "b": entry()}, b"1234"), "tensor 'b' overlaps"),
        (file_of({"a": entry(data_offsets=[4, 8])}, b"12345678"), "leaves a hole"),
        (file_of({"__metadata__": {"a": 1}}), "should map strings to strings"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(safetensors.SafetensorError) as caught:
        safetensors.load_file(path)
    assert text in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_the_format_cannot_hold_is_refused() -> None:
    with pytest.raises(safetensors.SafetensorError, match="tensor 'c': dtype"):
        safetensors.save({"c": torch.ones(1, dtype=torch.complex128)})
    with pytest.raises(TypeError, match="'a' should be a Tensor"):
        safetensors.save({"a": 3})
    with pytest.raises(safetensors.SafetensorError, match="cannot be the name"):
        safetensors.save({"__metadata__": torch.ones(1)})


def test_a_picture_names_ops_and_leaves(tmp_path: Path) -> None:
    weight = torch.ones(2, 3, requires_grad=True)
    loss = (weight * weight).sum()
    for suffix in ("svg", "html"):
        path = tmp_path / f"graph.{suffix}"
        graph.draw_graph(loss, path, {"weight": weight}, title="a <title>")
        text = path.read_text(encoding="utf-8")
        for part in ("MulBackward0", "SumBackward0", "weight", "(2, 3) float32", "a &lt;title&gt;"):
            assert part in text
    ElementTree.parse(tmp_path / "graph.svg")
    dot = graph.to_dot(loss, {"weight": weight})
    assert '"weight\\n(2, 3) float32"' in dot
    assert '[label="x2"]' in dot


def test_a_picture_is_as_wide_as_its_title_and_says_how_often_an_edge_counts() -> None:
    w = torch.ones(2, requires_grad=True)
    plain = ElementTree.fromstring(graph.to_svg(w * w, {"w": w}))
    titled = ElementTree.fromstring(graph.to_svg(w * w, {"w": w}, title="a title " * 20))
    assert float(titled.attrib["width"]) > 4 * float(plain.attrib["width"])
    words = [node.text for node in plain.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("\N{MULTIPLICATION SIGN}2") == 1
    assert graph.to_svg(w.sin()).count("&#215;") == 0


def test_a_picture_needs_a_graph_and_a_known_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not require grad"):
        graph.draw_graph(torch.ones(2), tmp_path / "x.svg")
    with pytest.raises(ValueError, match=r"ends in \.svg or \.html"):
        graph.draw_graph(torch.ones(2, requires_grad=True), tmp_path / "x.png")
    with pytest.raises(TypeError, match="expected a Tensor"):
        graph.collect(3)  # type: ignore[arg-type]
    leaf = graph.collect(torch.ones(2, requires_grad=True))
    assert [node.kind for node in leaf.nodes] == ["leaf"]


def test_a_graph_of_ten_thousand_nodes_is_drawn_without_recursion(tmp_path: Path) -> None:
    value = start = torch.ones(1, requires_grad=True)
    for _ in range(10_000):
        value = value.sin()
    found = graph.collect(value, {"start": start})
    assert len(found.nodes) == 10_002
    graph.draw_graph(value, tmp_path / "long.svg")
    assert (tmp_path / "long.svg").stat().st_size > 10_000


def test_boxes_never_overlap_and_edges_point_down() -> None:
    sizes = [(60.0 + 17 * (k % 5), 30.0 + 9 * (k % 3)) for k in range(120)]
    edges = [(k, k + step) for k in range(120) for step in (1, 3, 11 + k % 7) if k + step < 120]
    layout = lay_out(sizes, edges)
    boxes = layout.boxes
    for one in range(120):
        for two in range(one):
            (x, y, w, h), (x2, y2, w2, h2) = boxes[one], boxes[two]
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for (source, target), points in zip(edges, layout.routes, strict=True):
        assert boxes[source][1] + boxes[source][3] < boxes[target][1]
        heights = [y for _, y in points]
        assert heights == sorted(heights)
    assert all(x >= 0 and x + w <= layout.width for x, _, w, _ in boxes)
    with pytest.raises(ValueError, match="cycle"):
        lay_out([(1.0, 1.0)] * 2, [(0, 1), (1, 0)])
