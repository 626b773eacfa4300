"""`SummaryWriter`: what it writes, read by TensorBoard's own reader."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import Any

import numpy
import pytest

import pullback as torch

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.util import tensor_util

from pullback.utils.tensorboard import FileWriter, SummaryWriter, summary


def events(folder: Path) -> list[Any]:
    """All events of the files of a folder."""
    files = sorted(folder.glob("*tfevents*"))
    return [event for file in files for event in LegacyEventFileLoader(str(file)).Load()]


def values(folder: Path) -> list[Any]:
    """The values of all summaries."""
    return [value for event in events(folder) for value in event.summary.value]


def array(value: Any) -> Any:
    return tensor_util.make_ndarray(value.tensor)


def test_numbers(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3, walltime=7.0)
        writer.add_scalar("new", 0.25, 4, new_style=True, double_precision=True)
    old, new = [event for event in events(tmp_path) if event.summary.value]
    assert (old.step, old.wall_time, old.summary.value[0].simple_value) == (3, 7.0, 0.5)
    assert (new.step, array(new.summary.value[0])) == (4, 0.25)
    with pytest.raises(ValueError, match="expected one number, got 2"):
        summary.scalar("x", torch.ones(2))


def test_several_numbers_have_folders_of_their_own(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalars("a/b", {"x": step, "y": -step}, step)
    for name, sign in (("x", 1), ("y", -1)):
        found = values(tmp_path / f"a_b_{name}")
        assert [value.simple_value for value in found] == [0, sign, 2 * sign]
        assert len(list((tmp_path / f"a_b_{name}").iterdir())) == 1


def test_what_is_added_after_close_begins_another_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("x", 1)
    writer.close()
    writer.close()
    writer.add_scalar("x", 2)
    writer.close()
    assert sorted(value.simple_value for value in values(tmp_path)) == [1, 2]


def test_purged_steps(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path, purge_step=5):
        pass
    assert any(event.session_log.status == 1 and event.step == 5 for event in events(tmp_path))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_tensors(dtype: torch.dtype, tmp_path: Path) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    with SummaryWriter(tmp_path) as writer:
        writer.add_tensor("x", x)
    (value,) = values(tmp_path)
    assert array(value).tolist() == x.tolist()


def test_histograms_count_all_numbers(tmp_path: Path) -> None:
    x = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0, 1e3])
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("default", x)
        writer.add_histogram("limits", x, bins=[-2, 0, 1, 3])
        writer.add_histogram("count", x, bins=4)
        writer.add_histogram("most", x, max_bins=8)
        writer.add_histogram("half", x.bfloat16())
    default, limits, count, most, half = (value.histo for value in values(tmp_path))
    for histogram in (default, count, most, half):
        assert sum(histogram.bucket) == 6
        assert len(histogram.bucket) == len(histogram.bucket_limit)
    assert (default.min, default.max, default.num) == (-1, 1000, 6)
    assert default.sum == x.sum().item()
    assert default.sum_squares == pytest.approx((x * x).sum().item())
    assert list(limits.bucket) == [0, 1, 3, 1]
    assert list(limits.bucket_limit) == [-2, 0, 1, 3]
    assert len(most.bucket) <= 9


def test_histograms_that_cannot_be(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("x", torch.empty(0))
        with pytest.raises(ValueError, match="histogram is empty"):
            writer.add_histogram("x", torch.ones(2), bins=[5, 6])
        with pytest.raises(ValueError, match=r"len\(bucket_limits\)"):
            writer.add_histogram_raw("x", 0, 1, 1, 1, 1, [1], [1, 2])
        writer.add_histogram_raw("x", 0, 1, 2, 1, 1, [0.5, 1], [1, 1])
    (value,) = values(tmp_path)
    assert list(value.histo.bucket) == [1, 1]


def decoded(value: Any) -> Any:
    image = pytest.importorskip("PIL.Image")
    return numpy.asarray(image.open(io.BytesIO(value.image.encoded_image_string)))


@pytest.mark.parametrize(
    ("shape", "formats", "size"),
    [
        ((3, 4, 5), "CHW", (4, 5, 3)),
        ((1, 4, 5), "CHW", (4, 5, 3)),
        ((4, 4, 5), "CHW", (4, 5, 4)),
        ((4, 5, 3), "HWC", (4, 5, 3)),
        ((4, 5), "HW", (4, 5, 3)),
        ((10, 3, 4, 5), "NCHW", (8, 40, 3)),
        ((2, 4, 5, 3), "NHWC", (4, 10, 3)),
    ],
)
def test_pictures(
    shape: tuple[int, ...], formats: str, size: tuple[int, ...], tmp_path: Path
) -> None:
    x = torch.rand(shape)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("x", x, dataformats=formats)
    (value,) = values(tmp_path)
    assert (value.image.height, value.image.width, value.image.colorspace) == size
    shown = decoded(value)
    assert shown.shape == size
    index = tuple({"N": 0, "C": 0, "H": 3, "W": 2}[name] for name in formats)
    assert shown[3, 2, 0] == int(x[index].item() * 255)


def test_shades_are_bytes_or_parts_of_one() -> None:
    for shades in (torch.tensor([[0, 128, 255]], dtype=torch.uint8), torch.tensor([[0, 0.505, 1]])):
        shown = decoded(summary.image("x", shades, dataformats="HW").value[0])
        assert shown[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize(
    ("shape", "formats", "phrase"),
    [
        ((3, 4), "CHW", "size of input tensor and input format are different"),
        ((2, 4, 5), "CHW", "1, 3 or 4 channels, got 2"),
        ((3, 4, 5), "CHX", "dataformats must name"),
        ((3, 4, 5), "HHW", "dataformats must name"),
    ],
)
def test_what_is_no_picture(shape: tuple[int, ...], formats: str, phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        summary.image("x", torch.zeros(shape), dataformats=formats)


def test_boxes_are_drawn_where_they_are(tmp_path: Path) -> None:
    boxes = torch.tensor([[1.0, 2.0, 4.0, 6.0], [0.0, 0.0, 100.0, 100.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("x", torch.zeros(3, 8, 9), boxes[:1], rescale=2)
        writer.add_image_with_boxes("y", torch.zeros(3, 8, 9), boxes, labels=["a", "b"])
    first, second = values(tmp_path)
    shown = decoded(first)
    assert shown.shape == (16, 18, 3)
    red = (shown == [255, 0, 0]).all(-1)
    edges = (red[4, 2:9], red[12, 2:9], red[4:13, 2], red[4:13, 8])
    assert all(edge.all() for edge in edges)
    assert red.sum() == 2 * 7 + 2 * 9 - 4
    assert decoded(second).shape == (8, 9, 3)
    with pytest.raises(ValueError, match="2 boxes and 1 labels"):
        summary.image_boxes("x", torch.zeros(3, 8, 9), boxes, labels=["a"])


def test_videos_have_all_frames() -> None:
    pillow = pytest.importorskip("PIL.Image")
    x = torch.linspace(0, 1, 5).reshape(1, 5, 1, 1, 1).expand(2, 5, 3, 4, 6)
    (value,) = summary.video("x", x).value
    moving = pillow.open(io.BytesIO(value.image.encoded_image_string))
    assert (moving.n_frames, moving.size) == (5, (12, 4))
    with pytest.raises(ValueError, match=r"dimensions \(N, T, C, H, W\)"):
        summary.video("x", torch.zeros(3, 4, 5))


def test_sounds(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("x", torch.tensor([[0.0, 0.5, -0.5, 2.0]]), sample_rate=8000)
    (value,) = values(tmp_path)
    with wave.open(io.BytesIO(value.audio.encoded_audio_string)) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8000, 4)
        samples = numpy.frombuffer(sound.readframes(4), "<i2")
    assert samples.tolist() == [0, 16383, -16383, 32767]
    with pytest.raises(ValueError, match="1 dimensional"):
        summary.audio("x", torch.zeros(2, 4))


def test_texts(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "größer", 1)
    (value,) = values(tmp_path)
    assert value.tag == "note/text_summary"
    assert value.tensor.string_val[0].decode() == "größer"


class Model(torch.nn.Module):
    """A layer, and another one within a container."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2, 3)
        self.rest = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(3, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(self.first(x))


def test_graphs_have_ops_within_their_modules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Model(), torch.ones(1, 2), verbose=True)
    (text,) = [event.graph_def for event in events(tmp_path) if event.graph_def]
    nodes = {node.name: node for node in GraphDef.FromString(text).node}
    relu = nodes["Model/Sequential[rest]/ReLU[0]/relu"]
    assert relu.op == "aten::relu"
    (product,) = relu.input
    assert nodes[product].op == "aten::addmm"
    assert product.startswith("Model/Linear[first]/")
    assert {"input/input", "Model/Linear[first]/bias"} <= set(nodes[product].input)
    (source,) = nodes["output/output"].input
    assert source.startswith("Model/Sequential[rest]/Linear[1]/")
    shapes = nodes["output/output"].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shapes[0].dim] == [1, 1]
    assert all(name in nodes for node in nodes.values() for name in node.input)
    assert "aten::relu" in capsys.readouterr().out


def test_a_call_without_ops_has_no_graph(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError, match="no op"):
        writer.add_graph(torch.nn.Identity(), torch.ones(1))
    model = Model()
    with pytest.raises(RuntimeError):
        SummaryWriter(tmp_path).add_graph(model, torch.ones(1, 5))
    assert len(model.first._forward_hooks) + len(model.first._forward_pre_hooks) == 0


def test_vectors_for_the_projector(tmp_path: Path) -> None:
    x = torch.arange(6.0).reshape(3, 2)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(
            x,
            metadata=["a", "b\tc", "d"],
            label_img=torch.rand(3, 3, 2, 4),
            global_step=2,
            tag="../q",
        )
        writer.add_embedding(
            x, metadata=[["a", 1], ["b", 2], ["c", 3]], metadata_header=["text", "number"]
        )
        writer.add_embedding(x + 1)
        for metadata, pictures, phrase in (
            (["a"], None, "#labels should equal"),
            (None, torch.zeros(1, 3, 2, 2), "#images should equal"),
        ):
            with pytest.raises(ValueError, match=phrase):
                writer.add_embedding(x, metadata, pictures)
        with pytest.raises(ValueError, match="mat should be 2D"):
            writer.add_embedding(torch.ones(3))
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    first, second = config.embeddings
    assert (first.tensor_name, second.tensor_name) == ("../q:00002", "default:00000")
    assert (tmp_path / first.metadata_path).read_text() == "a\nb c\nd\n"
    assert list(first.sprite.single_image_dim) == [4, 2]
    pillow = pytest.importorskip("PIL.Image")
    assert pillow.open(io.BytesIO((tmp_path / first.sprite.image_path).read_bytes())).size == (8, 4)
    assert (tmp_path / first.tensor_path).resolve().is_relative_to(tmp_path.resolve())
    assert (tmp_path / second.tensor_path).read_text() == "1.0\t2.0\n3.0\t4.0\n5.0\t6.0\n"


def test_precision_and_recall(tmp_path: Path) -> None:
    labels = torch.tensor([1, 0, 1, 1])
    scores = torch.tensor([0.9, 0.4, 0.3, 1.0])
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("x", labels, scores, num_thresholds=5)
        writer.add_pr_curve("y", labels, scores, num_thresholds=5, weights=torch.full((4,), 2.0))
    one, two = (array(value) for value in values(tmp_path))
    for index in range(5):
        positive = (scores * 4).floor() >= index
        true = int((positive & (labels == 1)).sum())
        false = int((positive & (labels == 0)).sum())
        column = [true, false, 1 - false, 3 - true, true / max(true + false, 1e-7), true / 3]
        assert one[:, index].tolist() == pytest.approx(column)
        assert two[:4, index].tolist() == pytest.approx([2 * number for number in column[:4]])


def test_charts_of_several_curves(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars(
            {"T": {"a": ["Multiline", ["x", "y"]], "b": ["Margin", ["v", "l", "u"]]}}
        )
        writer.add_custom_scalars_multilinechart(["x"], "C", "t")
        with pytest.raises(ValueError, match="three tags"):
            writer.add_custom_scalars_marginchart(["x"])
        with pytest.raises(ValueError, match="'Multiline' or 'Margin'"):
            writer.add_custom_scalars({"T": {"a": ["Pie", ["x"]]}})
    both, one = (Layout.FromString(value.tensor.string_val[0]) for value in values(tmp_path))
    assert list(both.category[0].chart[0].multiline.tag) == ["x", "y"]
    assert both.category[0].chart[1].margin.series[0].upper == "u"
    assert one.category[0].title == "C"


def test_meshes(tmp_path: Path) -> None:
    vertices = torch.rand(1, 4, 3)
    faces = torch.tensor([[[0, 1, 2]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("m", vertices, faces=faces, config_dict={"camera": 1})
    points, triangles = values(tmp_path)
    assert (points.tag, triangles.tag) == ("m_VERTEX", "m_FACE")
    assert array(points).tolist() == vertices.tolist()
    content = MeshPluginData.FromString(points.metadata.plugin_data.content)
    assert (content.json_config, content.components) == ('{"camera": 1}', 6)
    with pytest.raises(ValueError, match="BxNx3"):
        summary.mesh("m", torch.zeros(4, 3), None, None, None)


def test_settings_with_their_results(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.5, "size": torch.tensor(3), "name": "x", "flag": True, "unset": None},
            {"loss": 0.25},
            {"name": ["x", "y"]},
            run_name="run",
            global_step=4,
        )
    experiment, start, end, loss = values(tmp_path / "run")
    parts = [
        HParamsPluginData.FromString(value.metadata.plugin_data.content)
        for value in (experiment, start, end)
    ]
    infos = {info.name: info for info in parts[0].experiment.hparam_infos}
    assert list(infos) == ["lr", "size", "name", "flag"]
    assert [info.type for info in infos.values()] == [3, 3, 1, 2]
    assert [v.string_value for v in infos["name"].domain_discrete.values] == ["x", "y"]
    chosen = parts[1].session_start_info.hparams
    assert (chosen["lr"].number_value, chosen["size"].number_value) == (0.5, 3)
    assert (chosen["name"].string_value, chosen["flag"].bool_value) == ("x", True)
    assert parts[2].session_end_info.status == 1
    assert loss.simple_value == 0.25


@pytest.mark.parametrize(
    ("arguments", "error", "phrase"),
    [
        (({"a": [1]}, {}), ValueError, "int, float, str, bool, or torch.Tensor: a is list"),
        ((3, {}), TypeError, "hparam_dict should be a dictionary"),
        (({}, 3), TypeError, "metric_dict should be a dictionary"),
        (({}, {}, {"x": [1]}), TypeError, "keys \\['x'\\]"),
    ],
)
def test_settings_that_cannot_be(
    arguments: tuple[Any, ...], error: type[Exception], phrase: str
) -> None:
    with pytest.raises(error, match=phrase):
        summary.hparams(*arguments)


def test_figures(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(1, 2), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("x", figure)
    (value,) = values(tmp_path)
    assert (value.image.height, value.image.width) == (100, 50)
    assert not pyplot.fignum_exists(figure.number)


def test_files_of_onnx_are_refused(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(NotImplementedError, match="add_graph"):
        writer.add_onnx_graph("file")


def test_files_are_opened_again(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path)
    writer.close()
    writer.reopen()
    writer.add_summary(summary.scalar("x", 1))
    writer.close()
    assert [value.simple_value for value in values(tmp_path)] == [1]
