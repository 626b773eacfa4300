"""Writes events of a run to files that TensorBoard reads.

What an event holds is made by `summary`; here it gets its step and its time, and its file.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ..._tensor import Tensor
from . import _embedding, summary

__all__ = ["FileWriter", "SummaryWriter"]


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
        self._arguments = (os.fspath(log_dir), max_queue, flush_secs, filename_suffix)
        self.event_writer = EventFileWriter(*self._arguments)

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

    def add_graph(self, graph_profile: tuple[Any, Any], walltime: float | None = None) -> None:
        """Writes a graph, and what is known of its run."""
        graph, profile = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        tagged = TaggedRunMetadata(tag="step1", run_metadata=profile.SerializeToString())
        self.add_event(Event(tagged_run_metadata=tagged), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Writes a graph alone."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Writes the pending events."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes the pending events, and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begins another file in the folder."""
        self.event_writer = EventFileWriter(*self._arguments)


class SummaryWriter:
    """Writes numbers, pictures, texts, sounds, graphs of a run.

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
        self.purge_step = purge_step
        self._arguments = (max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _get_file_writer(self) -> FileWriter:
        """The writer of the run's file; after :meth:`close` it begins another file."""
        if self.file_writer is not None:
            return self.file_writer
        writer = FileWriter(self.log_dir, *self._arguments)
        self.file_writer, self.all_writers = writer, {writer.get_logdir(): writer}
        if self.purge_step is not None:
            step, self.purge_step = self.purge_step, None
            writer.add_event(Event(step=step, file_version="brain.Event:2"))
            writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), step)
        return writer

    def _write(self, made: Any, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(made, step, walltime)

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
        made = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._write(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes several numbers under one name, each into a folder of its own."""
        self._get_file_writer()
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in writers:
                writers[folder] = FileWriter(folder, *self._arguments)
            writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: Tensor,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes all elements of a tensor."""
        self._write(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Writes how numbers are distributed.

        Args:
            tag: their name.
            values: the numbers.
            global_step: the step.
            bins: limits that grow by a tenth each; or how many intervals there are, their limits,
                or one of NumPy's rules (``"auto"``, ``"fd"``).
            walltime: the time; now unless given.
            max_bins: how many intervals there are at most.

        Raises:
            ValueError: for no numbers.
        """
        self._write(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a distribution that has been counted already.

        Raises:
            ValueError: if there are not as many limits as counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._write(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Writes a picture.

        Args:
            tag: its name.
            img_tensor: shades, from 0 to 1 in floating point, from 0 to 255 in ``uint8``.
            global_step: the step.
            walltime: the time; now unless given.
            dataformats: what the dimensions are: channels, height, width.

        Raises:
            ValueError: for dimensions that are not these, and other than 1, 3 or 4 channels.
        """
        self._write(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Writes several pictures in a grid, as :meth:`add_image` writes one."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Writes a picture with boxes.

        Args:
            tag: its name.
            img_tensor: the picture.
            box_tensor: the left, upper, right and lower edge of each box.
            global_step: the step.
            walltime: the time; now unless given.
            rescale: by how much it is enlarged.
            dataformats: what the dimensions of the picture are.
            labels: a text for each box, for which Pillow is needed.

        Raises:
            ValueError: for other numbers of edges or labels.
        """
        texts = [labels] * len(box_tensor) if isinstance(labels, str) else labels
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, texts)
        self._write(made, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Writes a figure of matplotlib, or several in a grid, as a picture.

        Args:
            tag: its name.
            figure: the figure, or several of one size.
            global_step: the step.
            close: whether matplotlib is to forget it.
            walltime: the time; now unless given.
        """
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures = figure if isinstance(figure, list) else [figure]
        drawn = []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(numpy.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self.add_image(tag, numpy.stack(drawn), global_step, walltime, "NHWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Writes moving pictures, for which Pillow is needed.

        Args:
            tag: their name.
            vid_tensor: of shape ``(N, T, C, H, W)``; those of a batch run side by side.
            global_step: the step.
            fps: how many are shown in a second.
            walltime: the time; now unless given.
        """
        self._write(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Writes a sound.

        Args:
            tag: its name.
            snd_tensor: values from -1 to 1, of shape ``(L,)`` or ``(1, L)``.
            global_step: the step.
            sample_rate: how many of them are a second.
            walltime: the time; now unless given.
        """
        self._write(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a text."""
        self._write(summary.text(tag, text_string), global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Writes the ops of one call of a module, within the modules that call them.

        Args:
            model: the module; it runs once, without gradients.
            input_to_model: its only argument, or all of them in a tuple or list.
            verbose: whether the ops are printed too.
            use_strict_trace: nothing is traced, so that it does not matter.
        """
        from ._graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Would write the graph of a file of ONNX.

        Raises:
            NotImplementedError: always: such files are not read here.
        """
        raise NotImplementedError("files of ONNX are not read: use add_graph with the module")

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Writes vectors for TensorBoard's projector.

        Args:
            mat: a vector in each row.
            metadata: a text for each vector, or several in columns.
            label_img: a picture for each, of shape ``(N, C, H, W)``.
            global_step: the step.
            tag: their name.
            metadata_header: the names of the columns.

        Raises:
            ValueError: if there are not as many texts or pictures as there are vectors.
        """
        step = f"{0 if global_step is None else int(global_step):05d}"
        # (A name may lead to no other folder.)
        folder = "".join(
            char if char.isalnum() or char in "-_" else f"%{ord(char):02x}" for char in tag
        )
        _embedding.add(
            self._get_file_writer().get_logdir(),
            f"{step}/{folder}",
            f"{tag}:{step}",
            mat,
            metadata,
            label_img,
            metadata_header,
        )

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes precision and recall of a classifier at thresholds from 0 to 1.

        Args:
            tag: the name of the curve.
            labels: for each example whether it is of the class.
            predictions: for each example how likely the classifier says that is.
            global_step: the step.
            num_thresholds: how many thresholds there are.
            weights: what each example counts; one unless given.
            walltime: the time; now unless given.
        """
        made = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._write(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a curve of precision and recall that has been counted already."""
        made = summary.pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._write(made, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Lets the curves of several tags be shown in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Lets the curve of the first tag be shown between those of the other two.

        Raises:
            ValueError: for other than three tags.
        """
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Says which curves are shown together; only the last call of a run matters.

        Args:
            layout: by category and title: ``["Multiline", [tag, ...]]``, or
                ``["Margin", [value, lower, upper]]``, tags too.
        """
        self._write(summary.custom_scalars(layout), None, None)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes points in space with the triangles between them.

        Args:
            tag: their name.
            vertices: coordinates, of shape ``(B, V, 3)``.
            colors: a colour for each, of that shape, from 0 to 255.
            faces: which three points are a triangle, of shape ``(B, F, 3)``.
            config_dict: what the display is told, as ``three.js`` takes it.
            global_step: the step.
            walltime: the time; now unless given.
        """
        made = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._write(made, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Writes a run's settings with its results, into a folder of their own.

        Args:
            hparam_dict: the settings, by name: texts, numbers and bools.
            metric_dict: the results, by name.
            hparam_domain_discrete: all values that a setting may have.
            run_name: the folder's name; the time unless given.
            global_step: the step.

        Raises:
            TypeError: for what is no dictionary.
            ValueError: for settings of other types.
        """
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        name = str(time.time()) if run_name is None else run_name
        with SummaryWriter(os.path.join(self.log_dir, name)) as writer:
            for part in parts:
                writer._write(part, None, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Writes the pending events."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes the pending events, and closes the files; later additions begin new files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
