"""The files of TensorBoard's projector: vectors, what they stand for, and a picture of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from .summary import _bytes_of, array_of, png

__all__ = ["add"]

_CONFIG = "projector_config.pbtxt"


def add(
    folder: str,
    subfolder: str,
    name: str,
    vectors: Any,
    metadata: Sequence[Any] | None,
    pictures: Any,
    header: Sequence[str] | None,
) -> None:
    """Writes vectors under a folder of the run, and puts them into the projector's list.

    Args:
        folder: the run's.
        subfolder: the folder within it.
        name: what the projector calls the vectors.
        vectors: one in each row.
        metadata: a text for each vector, or several in columns.
        pictures: one for each, of shape ``(N, C, H, W)``.
        header: the names of the columns.

    Raises:
        ValueError: if there are not as many texts, names or pictures as there are vectors or
            columns.
    """
    rows = array_of(vectors)
    if rows.ndim != 2:
        raise ValueError("mat should be 2D, where mat.size(0) is the number of data points")
    path = Path(folder) / subfolder
    path.mkdir(parents=True, exist_ok=True)
    info = EmbeddingInfo(tensor_name=name, tensor_path=f"{subfolder}/tensors.tsv")
    if metadata is not None:
        if len(metadata) != len(rows):
            raise ValueError("#labels should equal with #data points")
        _write_metadata(path / "metadata.tsv", metadata, header)
        info.metadata_path = f"{subfolder}/metadata.tsv"
    if pictures is not None:
        shown = array_of(pictures)
        if len(shown) != len(rows):
            raise ValueError("#images should equal with #data points")
        _write_sprite(path / "sprite.png", shown)
        info.sprite.image_path = f"{subfolder}/sprite.png"
        info.sprite.single_image_dim.extend([shown.shape[3], shown.shape[2]])
    lines = ("\t".join(str(value) for value in row) for row in rows.tolist())
    (path / "tensors.tsv").write_text("".join(f"{line}\n" for line in lines))
    _list(Path(folder) / _CONFIG, info)


def _write_metadata(path: Path, metadata: Sequence[Any], header: Sequence[str] | None) -> None:
    texts = [[str(one)] for one in metadata]
    if header is not None:
        if any(len(header) != len(row) for row in metadata):
            raise ValueError("len of header must be equal to the number of columns in metadata")
        texts = [list(header), *([str(value) for value in row] for row in metadata)]
    # (A tab or a line break within a text would begin another column or row.)
    lines = ("\t".join(" ".join(text.split("\t")) for text in row) for row in texts)
    text = "".join(f"{' '.join(line.splitlines())}\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def _write_sprite(path: Path, pictures: Any) -> None:
    """All pictures in one, in rows of as many as there are rows."""
    count, channels, height, width = pictures.shape
    side = int(numpy.ceil(numpy.sqrt(count)))
    cells = numpy.zeros((side * side, height, width, channels), pictures.dtype)
    cells[:count] = pictures.transpose(0, 2, 3, 1)
    grid = cells.reshape(side, side, height, width, channels).transpose(0, 2, 1, 3, 4)
    picture = grid.reshape(side * height, side * width, channels)
    path.write_bytes(png(_bytes_of(picture)))


def _list(path: Path, info: Any) -> None:
    """Adds vectors to the projector's list, in the place of those that have their name."""
    config = ProjectorConfig()
    if path.is_file():
        text_format.Parse(path.read_text(encoding="utf-8"), config)
    others = [one for one in config.embeddings if one.tensor_name != info.tensor_name]
    listed = ProjectorConfig(embeddings=[*others, info])
    path.write_text(text_format.MessageToString(listed), encoding="utf-8")
