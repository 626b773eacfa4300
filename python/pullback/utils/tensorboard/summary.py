"""What is written for each kind of thing: the messages that TensorBoard's plugins read.

Each function makes one ``Summary`` of values and writes nothing. Pictures are PNG files, made with
the standard library; moving ones are GIF files, for which Pillow is needed.
"""

from __future__ import annotations

import io
import json
import struct
import wave
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar_metadata
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve import metadata as pr_curve_metadata
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ..._tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

# Below this, a count is no divisor.
_LEAST = 1e-7


def array_of(values: Any) -> NDArray[Any]:
    """Numbers as an array, whatever their source."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # (NumPy has no bfloat16.)
        return numpy.asarray(
            values.float() if values.element_size() < 4 and values.is_floating_point() else values
        )
    return numpy.asarray(values)


def _number(value: Any) -> float:
    array = array_of(value)
    if array.size != 1:
        raise ValueError(f"expected one number, got {array.size}")
    return float(array.reshape(()))


def _single(tag: str, **value: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **value)])


def scalar(
    tag: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Any:
    """A number.

    Args:
        tag: its name.
        tensor: the number.
        collections: not used, as in PyTorch.
        new_style: whether it is written as a tensor, as newer versions of TensorBoard do.
        double_precision: whether that has 64 bits.
    """
    number = _number(tensor)
    if not new_style:
        return _single(tag, simple_value=number)
    proto = (
        TensorProto(double_val=[number], dtype="DT_DOUBLE")
        if double_precision
        else TensorProto(float_val=[number], dtype="DT_FLOAT")
    )
    plugin = SummaryMetadata.PluginData(plugin_name="scalars")
    return _single(tag, tensor=proto, metadata=SummaryMetadata(plugin_data=plugin))


_DTYPES = {
    "float16": "DT_HALF",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "int8": "DT_INT8",
    "int16": "DT_INT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "uint8": "DT_UINT8",
    "bool": "DT_BOOL",
    "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128",
}


def _proto(array: NDArray[Any]) -> Any:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return TensorProto(
        dtype=_DTYPES[array.dtype.name], tensor_shape=shape, tensor_content=little.tobytes()
    )


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """All elements of a tensor.

    Raises:
        ValueError: for a dtype that TensorBoard does not have.
    """
    array = array_of(tensor)
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"TensorBoard has no tensors of {array.dtype.name}")
    plugin = SummaryMetadata.PluginData(plugin_name="tensor")
    return _single(tag, tensor=_proto(array), metadata=SummaryMetadata(plugin_data=plugin))


def _default_bins() -> list[float]:
    """Limits that grow by a tenth each, on both sides of zero."""
    limits = []
    limit = 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [*(-limit for limit in reversed(limits)), 0.0, *limits]


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How numbers are distributed.

    Args:
        tag: their name.
        values: the numbers.
        bins: the limits of intervals, how many there are, or a rule of NumPy's by its name;
            ``"tensorflow"`` stands for limits that grow by a tenth each.
        max_bins: how many intervals there are at most.

    Raises:
        ValueError: for no numbers, and for intervals that hold none of them.
    """
    array = array_of(values).astype(numpy.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("The input has no element.")
    chosen = _default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = numpy.histogram(array, bins=chosen)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        padded = numpy.concatenate([counts, numpy.zeros(-len(counts) % step, counts.dtype)])
        counts = padded.reshape(-1, step).sum(axis=1)
        limits = numpy.concatenate([limits[:-1:step], limits[-1:]])
    filled = numpy.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    # The empty interval before the first one that is not says where that one begins.
    first, last = int(filled[0]), int(filled[-1])
    return histogram_raw(
        tag,
        min=float(array.min()),
        max=float(array.max()),
        num=int(array.size),
        sum=float(array.sum()),
        sum_squares=float(array.dot(array)),
        bucket_limits=[float(limit) for limit in limits[first : last + 2]],
        bucket_counts=[0.0, *(float(count) for count in counts[first : last + 1])],
    )


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: int,
    sum: float,
    sum_squares: float,
    bucket_limits: Sequence[float],
    bucket_counts: Sequence[float],
) -> Any:
    """A distribution that has been counted already.

    Args:
        name: its name.
        min: the least number.
        max: the largest one.
        num: how many there are.
        sum: their sum.
        sum_squares: the sum of their squares.
        bucket_limits: the upper limits of intervals.
        bucket_counts: how many numbers are in each.
    """
    proto = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return _single(name, histo=proto)


def planes(tensor: Any, dataformats: str) -> NDArray[Any]:
    """Pictures as one of height, width and three channels (or four); several are put into a grid.

    Raises:
        ValueError: for names of dimensions that do not fit the tensor.
    """
    array = array_of(tensor)
    names = dataformats.upper()
    if (
        len(set(names)) != len(names)
        or set(names) - set("NCHW")
        or "H" not in names
        or "W" not in names
    ):
        raise ValueError(
            f"dataformats must name H, W and perhaps N, C once each, got {dataformats!r}"
        )
    if array.ndim != len(names):
        raise ValueError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, "
            f"input_format: {dataformats}"
        )
    array = array.transpose([names.index(name) for name in "NHWC" if name in names])
    if "C" not in names:
        array = array[..., None]
    if "N" in names:
        array = _grid(array)
    if array.shape[-1] == 1:
        array = array.repeat(3, axis=-1)
    if array.shape[-1] not in (3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 channels, got {array.shape[-1]}")
    return array


def _grid(array: NDArray[Any]) -> NDArray[Any]:
    """Pictures side by side, up to eight in a row."""
    count, height, width, channels = array.shape
    columns = min(count, 8)
    rows = -(-count // max(columns, 1))
    grid = numpy.zeros((rows, columns, height, width, channels), array.dtype)
    grid.reshape(-1, height, width, channels)[:count] = array
    return grid.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def _bytes_of(array: NDArray[Any]) -> NDArray[numpy.uint8]:
    """Shades from 0 to 255: those of floating point are from 0 to 1."""
    if array.dtype == numpy.uint8:
        return array
    scaled = array * 255.0 if array.dtype.kind == "f" else array
    return numpy.clip(scaled, 0, 255).astype(numpy.uint8)


def png(array: NDArray[numpy.uint8]) -> bytes:
    """The PNG file of a picture (ISO/IEC 15948): one filter byte, none, before each row."""
    height, width, channels = array.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = numpy.zeros((height, 1 + width * channels), numpy.uint8)
    rows[:, 1:] = array.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows.tobytes())),
            chunk(b"IEND", b""),
        )
    )


def _picture(array: NDArray[numpy.uint8], encoded: bytes) -> Any:
    height, width, channels = array.shape[-3:]
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded
    )


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or several in a grid.

    Args:
        tag: its name.
        tensor: shades, from 0 to 1 in floating point, from 0 to 255 in ``uint8``.
        rescale: by how much it is enlarged, to the next element of the picture.
        dataformats: what the dimensions are: number, channels, height, width.

    Raises:
        ValueError: for dimensions that are not these, and other numbers of channels.
    """
    array = _rescaled(_bytes_of(planes(tensor, dataformats)), rescale)
    return _single(tag, image=_picture(array, png(array)))


def _rescaled(array: NDArray[numpy.uint8], rescale: float) -> NDArray[numpy.uint8]:
    if rescale == 1:
        return array
    height, width = (max(1, int(size * rescale)) for size in array.shape[:2])
    rows = numpy.minimum((numpy.arange(height) / rescale).astype(int), array.shape[0] - 1)
    columns = numpy.minimum((numpy.arange(width) / rescale).astype(int), array.shape[1] - 1)
    shown: NDArray[numpy.uint8] = array[rows][:, columns]
    return shown


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: list[str] | None = None,
) -> Any:
    """A picture with boxes drawn on it.

    Args:
        tag: its name.
        tensor_image: the picture.
        tensor_boxes: the left, upper, right and lower edge of each box.
        rescale: by how much it is enlarged.
        dataformats: what the dimensions of the picture are.
        labels: a text for each box, for which Pillow is needed.

    Raises:
        ValueError: for other numbers of edges or labels.
        ModuleNotFoundError: for labels without Pillow.
    """
    array = _rescaled(_bytes_of(planes(tensor_image, dataformats)), rescale).copy()
    boxes = array_of(tensor_boxes).astype(float).reshape(-1, 4) * rescale
    if labels is not None and len(labels) != len(boxes):
        raise ValueError(f"there are {len(boxes)} boxes and {len(labels)} labels")
    for box in boxes:
        _draw(array, box)
    if labels is not None:
        array = _labelled(array, boxes, labels)
    return _single(tag, image=_picture(array, png(array)))


def _draw(array: NDArray[numpy.uint8], box: NDArray[Any]) -> None:
    """Draws the edges of a box in red, as far as they are within the picture."""
    height, width = array.shape[:2]
    left, right = (int(numpy.clip(edge, 0, width - 1)) for edge in (box[0], box[2]))
    upper, lower = (int(numpy.clip(edge, 0, height - 1)) for edge in (box[1], box[3]))
    red = numpy.array([255, 0, 0, 255][: array.shape[2]], numpy.uint8)
    array[upper, left : right + 1] = array[lower, left : right + 1] = red
    array[upper : lower + 1, left] = array[upper : lower + 1, right] = red


def _labelled(
    array: NDArray[numpy.uint8], boxes: NDArray[Any], labels: list[str]
) -> NDArray[numpy.uint8]:
    _need("PIL", "labels of boxes", "pillow")
    from PIL import Image, ImageDraw

    picture = Image.fromarray(array)
    draw = ImageDraw.Draw(picture)
    for (left, upper, _, _), label in zip(boxes, labels, strict=True):
        draw.text((left + 2, upper + 1), label, fill="red")
    return numpy.asarray(picture)


def _need(module: str, what: str, package: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise ModuleNotFoundError(
            f"{what} need the package `{package}`: pip install {package}", name=module
        )


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Moving pictures, of which those of a batch run side by side.

    Args:
        tag: their name.
        tensor: of shape ``(N, T, C, H, W)``.
        fps: how many are shown in a second.

    Raises:
        ValueError: for other shapes.
        ModuleNotFoundError: without Pillow.
    """
    array = array_of(tensor)
    if array.ndim != 5:
        raise ValueError(f"a video has the dimensions (N, T, C, H, W), got {array.shape}")
    _need("PIL", "videos", "pillow")
    from PIL import Image

    frames = [_bytes_of(planes(array[:, time], "NCHW")) for time in range(array.shape[1])]
    if not frames:
        raise ValueError("the video has no frames")
    file = io.BytesIO()
    first, *others = (Image.fromarray(frame) for frame in frames)
    first.save(file, "GIF", save_all=True, append_images=others, duration=int(1000 / fps), loop=0)
    return _single(tag, image=_picture(frames[0], file.getvalue()))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Sound.

    Args:
        tag: its name.
        tensor: values from -1 to 1, of shape ``(L,)`` or ``(1, L)``; those beyond are clipped.
        sample_rate: how many of them are a second.

    Raises:
        ValueError: for several channels.
    """
    array = numpy.clip(array_of(tensor).astype(numpy.float64).squeeze(), -1, 1)
    array = array.reshape(1) if array.ndim == 0 else array
    if array.ndim != 1:
        raise ValueError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes((array * numpy.iinfo(numpy.int16).max).astype("<i2").tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=array.shape[0],
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _single(tag, audio=sound)


def _text_proto(texts: list[bytes]) -> Any:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(texts))])
    return TensorProto(dtype="DT_STRING", string_val=texts, tensor_shape=shape)


def text(tag: str, text: str) -> Any:
    """A text, which TensorBoard shows as Markdown."""
    content = TextPluginData(version=0).SerializeToString()
    plugin = SummaryMetadata.PluginData(plugin_name="text", content=content)
    return _single(
        f"{tag}/text_summary",
        tensor=_text_proto([text.encode()]),
        metadata=SummaryMetadata(plugin_data=plugin),
    )


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Any:
    """Precision and recall of a classifier at thresholds that are evenly spaced from 0 to 1.

    Args:
        tag: its name.
        labels: for each example whether it is of the class, as numbers or bools.
        predictions: for each example how likely the classifier says that is.
        num_thresholds: how many thresholds there are.
        weights: what each example counts; one unless given.
    """
    true = array_of(labels).astype(bool).reshape(-1)
    scores = array_of(predictions).astype(numpy.float64).reshape(-1)
    weight = numpy.ones_like(scores) if weights is None else array_of(weights).reshape(-1)
    # The last threshold that an example reaches; it is positive at that one and at those below.
    reached = numpy.clip(scores * (num_thresholds - 1), 0, num_thresholds - 1).astype(int)

    def above(chosen: NDArray[Any]) -> NDArray[Any]:
        counts = numpy.bincount(reached, weights=weight * chosen, minlength=num_thresholds)
        return numpy.cumsum(counts[::-1])[::-1]

    true_positive, false_positive = above(true), above(~true)
    true_negative = false_positive[0] - false_positive
    false_negative = true_positive[0] - true_positive
    return pr_curve_raw(
        tag,
        true_positive,
        false_positive,
        true_negative,
        false_negative,
        true_positive / numpy.maximum(_LEAST, true_positive + false_positive),
        true_positive / numpy.maximum(_LEAST, true_positive + false_negative),
        num_thresholds,
    )


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """A curve of precision and recall that has been counted already.

    Args:
        tag: its name.
        tp: the number of true positives at each threshold.
        fp: of false positives.
        tn: of true negatives.
        fn: of false negatives.
        precision: the precision at each threshold.
        recall: the recall.
        num_thresholds: how many thresholds there are; more than 127 are cut to so many.
        weights: not used, as in PyTorch.
    """
    num_thresholds = min(num_thresholds, 127)
    data = numpy.stack([array_of(row) for row in (tp, fp, tn, fn, precision, recall)])
    metadata = pr_curve_metadata.create_summary_metadata(tag, "", num_thresholds)
    return _single(tag, tensor=_proto(data.astype(numpy.float32)), metadata=metadata)


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: dict[str, Any] | None,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """Points in space with the triangles between them.

    Args:
        tag: their name.
        vertices: coordinates, of shape ``(B, V, 3)``.
        colors: a colour for each, of that shape, from 0 to 255; or None.
        faces: which three points are a triangle, of shape ``(B, F, 3)``; or None.
        config_dict: what the display is told, as ``three.js`` takes it.
        display_name: what the display calls it.
        description: what it says of it.

    Raises:
        ValueError: for other shapes.
    """
    kinds = MeshPluginData.ContentType
    parts = [
        (array_of(part), kinds.Value(kind))
        for part, kind in ((vertices, "VERTEX"), (faces, "FACE"), (colors, "COLOR"))
        if part is not None
    ]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    values = []
    for array, kind in parts:
        metadata = mesh_metadata.create_summary_metadata(
            tag,
            display_name,
            kind,
            components,
            array.shape,
            description,
            json_config=json.dumps(config_dict or {}, sort_keys=True),
        )
        values.append(
            Summary.Value(
                tag=mesh_metadata.get_instance_name(tag, kind),
                tensor=_proto(array.astype(numpy.float32)),
                metadata=metadata,
            )
        )
    return Summary(value=values)


def hparams(
    hparam_dict: dict[str, Any],
    metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """A run's settings, and which results it has.

    Args:
        hparam_dict: the settings, by name: texts, numbers and bools.
        metric_dict: the results; only their names matter.
        hparam_domain_discrete: all values that a setting may have.

    Returns:
        What says which settings there are, the ones of this run, and that it has ended.

    Raises:
        TypeError: for what is no dictionary.
        ValueError: for settings of other types.
    """
    for given, name in ((hparam_dict, "hparam_dict"), (metric_dict, "metric_dict")):
        if not isinstance(given, dict):
            raise TypeError(f"{name} should be a dictionary, got {type(given).__name__}")
    domains = hparam_domain_discrete or {}
    unknown = domains.keys() - hparam_dict.keys()
    if unknown:
        raise TypeError(
            f"hparam_domain_discrete has keys {sorted(unknown)} that hparam_dict has not"
        )
    start, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        kind = _set(start.hparams[name], name, value)
        info = api_pb2.HParamInfo(name=name, type=kind)
        for choice in domains.get(name, ()):
            _set(info.domain_discrete.values.add(), name, choice)
        infos.append(info)
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    end = SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
    return (
        _hparams_value(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
        _hparams_value(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _hparams_value(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def _set(target: Any, name: str, value: Any) -> int:
    """Writes a setting; returns its type."""
    if isinstance(value, (bool, numpy.bool_)):
        target.bool_value = bool(value)
        return int(api_pb2.DATA_TYPE_BOOL)
    if isinstance(value, str):
        target.string_value = value
        return int(api_pb2.DATA_TYPE_STRING)
    if isinstance(value, (int, float, Tensor, numpy.number)):
        target.number_value = _number(value)
        return int(api_pb2.DATA_TYPE_FLOAT64)
    raise ValueError(
        f"value should be one of int, float, str, bool, or torch.Tensor: {name} is "
        f"{type(value).__name__}"
    )


def _hparams_value(tag: str, **data: Any) -> Any:
    content = HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **data)
    metadata = hparams_metadata.create_summary_metadata(content)
    return _single(tag, tensor=hparams_metadata.NULL_TENSOR, metadata=metadata)


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> Any:
    """Which curves are shown together.

    Args:
        layout: by category and title: ``["Multiline", [tag, ...]]``, or
            ``["Margin", [value, lower, upper]]``, tags too.

    Raises:
        ValueError: for other kinds of charts, and margins of other than three tags.
    """
    categories = []
    for category, charts in layout.items():
        made = [_chart(title, *content) for title, content in charts.items()]
        categories.append(layout_pb2.Category(title=category, chart=made))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _single(
        custom_scalar_metadata.CONFIG_SUMMARY_TAG,
        tensor=proto,
        metadata=custom_scalar_metadata.create_summary_metadata(),
    )


def _chart(title: str, kind: str, tags: list[str]) -> Any:
    if kind == "Multiline":
        return layout_pb2.Chart(
            title=title, multiline=layout_pb2.MultilineChartContent(tag=list(tags))
        )
    if kind != "Margin":
        raise ValueError(f"a chart is 'Multiline' or 'Margin', got {kind!r}")
    if len(tags) != 3:
        raise ValueError(f"a margin has three tags, the value, the lower and the upper one: {tags}")
    value, lower, upper = tags
    series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))
