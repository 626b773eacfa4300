"""Writes events of a run to files that TensorBoard reads."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ..._tensor import Tensor

__all__ = ["FileWriter", "SummaryWriter"]


def _number(value: Any) -> float:
    return float(value.item() if hasattr(value, "item") else value)


class FileWriter:
    """Writes events into a file of a folder.

    Args:
        log_dir: the folder.
        max_queue: how many events wait to be written.
        flush_secs: how often they are written.
        filename_suffix: what the file's name ends with.
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(
            os.fspath(log_dir), max_queue, flush_secs, filename_suffix
        )

    def get_logdir(self) -> str:
        """The folder."""
        folder: str = self.event_writer.get_logdir()
        return folder

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Writes an event, with its step and time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Writes values as an event."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what waits, and closes the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes numbers, histograms and texts of a run.

    Args:
        log_dir: the folder; ``runs/DATE_HOST`` with the comment unless given.
        comment: what the folder's name ends with.
        purge_step: from which step on earlier events are dropped.
        max_queue: how many events wait to be written.
        flush_secs: how often they are written.
        filename_suffix: what the file's name ends with.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir: str = os.fspath(log_dir)
        self.file_writer: FileWriter | None = FileWriter(
            self.log_dir, max_queue, flush_secs, filename_suffix
        )
        if purge_step is not None:
            from tensorboard.compat.proto.event_pb2 import SessionLog

            start = Event(step=purge_step, file_version="brain.Event:2")
            self.file_writer.add_event(start)
            log = SessionLog(status=SessionLog.START)
            self.file_writer.add_event(Event(session_log=log), purge_step)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _write(self, value: Any, step: int | None, walltime: float | None) -> None:
        if self.file_writer is None:
            raise ValueError("the SummaryWriter is closed")
        self.file_writer.add_summary(Summary(value=[value]), step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Writes a number.

        Args:
            tag: its name.
            scalar_value: the number.
            global_step: the step.
            walltime: the time; now unless given.
            new_style: whether it is written as a tensor, as newer versions of TensorBoard do.
            double_precision: whether that has 64 bits.
        """
        number = _number(scalar_value)
        if not new_style:
            self._write(Summary.Value(tag=tag, simple_value=number), global_step, walltime)
            return
        plugin = SummaryMetadata.PluginData(plugin_name="scalars")
        tensor = (
            TensorProto(double_val=[number], dtype="DT_DOUBLE")
            if double_precision
            else TensorProto(float_val=[number], dtype="DT_FLOAT")
        )
        metadata = SummaryMetadata(plugin_data=plugin)
        self._write(Summary.Value(tag=tag, tensor=tensor, metadata=metadata), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes several numbers under one name, each into a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            writer = FileWriter(folder)
            number = Summary.Value(tag=main_tag, simple_value=_number(value))
            writer.add_summary(Summary(value=[number]), global_step, walltime)
            writer.close()

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = 64,
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Writes how numbers are distributed.

        Args:
            tag: their name.
            values: the numbers.
            global_step: the step.
            bins: how many intervals there are, or their limits.
            walltime: the time; now unless given.
            max_bins: how many intervals there are at most.

        Raises:
            ValueError: for no numbers.
        """
        import numpy

        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        array = numpy.asarray(array, dtype=numpy.float64).reshape(-1)
        if array.size == 0:
            raise ValueError("The input has no element.")
        chosen = min(bins, max_bins) if isinstance(bins, int) and max_bins else bins
        if chosen in ("tensorflow", "auto", "fd"):
            chosen = 64
        counts, limits = numpy.histogram(array, bins=chosen)
        histogram = HistogramProto(
            min=array.min(),
            max=array.max(),
            num=array.size,
            sum=array.sum(),
            sum_squares=array.dot(array),
            bucket_limit=limits[1:].tolist(),
            bucket=counts.tolist(),
        )
        self._write(Summary.Value(tag=tag, histo=histogram), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a text."""
        content = TextPluginData(version=0).SerializeToString()
        plugin = SummaryMetadata.PluginData(plugin_name="text", content=content)
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[text_string.encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        value = Summary.Value(
            tag=f"{tag}/text_summary",
            metadata=SummaryMetadata(plugin_data=plugin),
            tensor=tensor,
        )
        self._write(value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Would write a run's settings with its results.

        Raises:
            NotImplementedError: always: write them by :meth:`add_text` and :meth:`add_scalar`.
        """
        raise NotImplementedError("add_hparams is not there yet: use add_text and add_scalar")

    def flush(self) -> None:
        """Writes what waits."""
        if self.file_writer is not None:
            self.file_writer.flush()

    def close(self) -> None:
        """Writes what waits, and closes the file."""
        if self.file_writer is not None:
            self.file_writer.flush()
            self.file_writer.close()
            self.file_writer = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
