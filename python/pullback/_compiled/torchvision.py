"""The ops of torchvision: non-maximum suppression, pools over regions, deformable convolution.

Regions of interest are rows ``(index in the batch, x1, y1, x2, y2)``. The three pools that average
are linear in the image, and the weight of a pixel is the product of one of its row and one of its
column: a region is a matrix for the rows, one for the columns, and a product with each. Their
gradients are the same products, transposed. He et al., Mask R-CNN, 2017 (``roi_align``); Girshick,
Fast R-CNN, 2015 (``roi_pool``); Dai et al., R-FCN, 2016 (``ps_roi_pool``); Zhu et al., Deformable
ConvNets v2, 2019 (``deform_conv2d``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pullback as torch
from pullback import library

Tensor = Any
_SIZES = "SymInt pooled_height, SymInt pooled_width"
_IMAGE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOL = "Tensor input, Tensor rois, float spatial_scale"
_GRAD = "Tensor grad, Tensor rois"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt "
    "stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask"
)
_LIBRARY = library.Library("torchvision", "DEF")
# The number of boxes that are compared with each other at once.
_BLOCK = 1024


def _op(schema: str) -> Callable[[Any], Any]:
    def define(function: Any) -> Any:
        name = _LIBRARY.define(schema)
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        return function

    return define


@_op("_cuda_version() -> int")
def _cuda_version() -> int:
    return -1


# (Ops on quantized tensors, which are missing here, and on rotated boxes, which have no kernel.)
_LIBRARY.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_LIBRARY.define(
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float "
    f"rois_scale, int rois_zero_point, float spatial_scale, {_SIZES}, int sampling_ratio, bool "
    "aligned) -> Tensor"
)
_LIBRARY.define("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor")


# ---- boxes ----


def _overlap(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of each box of one list with each of another one."""
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (first, second)]
    return both / (areas[0][:, None] + areas[1][None, :] - both)


def _survivors(overlaps: Tensor) -> Tensor:
    """Which boxes of a block stay, where each that stays removes those after it that overlap."""
    stay = torch.ones(len(overlaps), dtype=torch.bool)
    for row in range(len(overlaps)):
        if stay[row]:
            stay[row + 1 :] &= ~overlaps[row, row + 1 :]
    return stay


@_op("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes, best first, that overlap no better one that stays by more than the threshold."""
    if dets.dim() != 2 or dets.size(1) != 4:
        raise RuntimeError(f"boxes should be a 2d tensor [N, 4], got {list(dets.shape)}")
    if scores.dim() != 1 or len(scores) != len(dets):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{len(dets)} and {list(scores.shape)}"
        )
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while len(left):
        block, left = left[:_BLOCK], left[_BLOCK:]
        boxes = dets[block]
        block = block[_survivors(_overlap(boxes, boxes).double() > iou_threshold)]
        kept.append(block)
        if len(left):
            removed = (_overlap(dets[block], dets[left]).double() > iou_threshold).any(0)
            left = left[~removed]
    return torch.cat(kept) if kept else left


# ---- pools ----


class _Region(NamedTuple):
    """One region: its number, its image, the weights of the rows and columns that it reads."""

    number: int
    image: int
    rows: slice
    columns: slice
    by_row: Tensor
    by_column: Tensor


def _align_weights(starts: Tensor, bins: Tensor, pooled: int, size: int, points: int) -> Tensor:
    """How much each bin takes of each row, ``(regions, pooled, size)``.

    A bin averages ``points`` points (its own number of them if that is 0), each interpolated
    linearly between two rows; points more than one row outside count as zero.
    """
    dtype = starts.dtype
    lengths = bins * pooled
    counts = (
        torch.full_like(lengths, points)
        if points > 0
        else torch.ceil(lengths / pooled).clamp(min=0)
    )
    most = int(counts.max()) if len(counts) else 0
    weights = starts.new_zeros(len(starts), pooled, size)
    if most == 0 or size == 0:
        return weights
    inner = (torch.arange(most, dtype=dtype) + 0.5) / counts.clamp(min=1)[:, None]
    places = torch.arange(pooled, dtype=dtype)[:, None] + inner[:, None, :]
    at = starts[:, None, None] + places * bins[:, None, None]
    counted = (torch.arange(most) < counts[:, None])[:, None] & (at >= -1) & (at <= size)
    at = at.clamp(min=0)
    low = at.floor().clamp(max=size - 1)
    share = torch.where(low >= size - 1, 0.0, at - low)
    each = counted.to(dtype) / counts.clamp(min=1)[:, None, None]
    weights.scatter_add_(2, low.long(), each * (1 - share))
    return weights.scatter_add_(2, (low + 1).clamp(max=size - 1).long(), each * share)


def _regions(rois: Tensor, by_row: Tensor, by_column: Tensor) -> Iterator[_Region]:
    """The regions, each with the part of the image that has a weight."""
    images = rois[:, 0].long().tolist()
    spans = [_spans(weights) for weights in (by_row, by_column)]
    for number, image in enumerate(images):
        rows, columns = spans[0][number], spans[1][number]
        yield _Region(
            number,
            image,
            rows,
            columns,
            by_row[number, :, rows],
            by_column[number, :, columns],
        )


def _spans(weights: Tensor) -> list[slice]:
    """The range from the first to the last position with a weight, of each region."""
    used = (weights != 0).any(1)
    places = torch.arange(weights.size(2))
    first = torch.where(used, places, weights.size(2)).amin(1)
    last = torch.where(used, places + 1, 0).amax(1)
    pairs = zip(first.tolist(), last.tolist(), strict=True)
    return [slice(begin, max(begin, end)) for begin, end in pairs]


def _check_rois(image: Tensor, rois: Tensor) -> None:
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError(f"rois must have shape as Tensor[K, 5], got {list(rois.shape)}")
    if image.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; "
            f"but type {image.dtype} does not equal {rois.dtype}"
        )


def _accurate(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _aligned(
    rois: Tensor, scale: float, pooled: tuple[int, int], size: tuple[int, int], how: _Alignment
) -> Iterator[_Region]:
    boxes = _accurate(rois)[:, 1:] * scale - (0.5 if how.is_aligned else 0.0)
    weights = []
    for axis in (1, 0):
        length = boxes[:, 2 + axis] - boxes[:, axis]
        if not how.is_aligned:
            length = length.clamp(min=1)
        place = 1 - axis
        bins = length / pooled[place]
        of_axis = _align_weights(boxes[:, axis], bins, pooled[place], size[place], how.points)
        weights.append(of_axis)
    return _regions(rois, *weights)


class _Alignment(NamedTuple):
    points: int
    is_aligned: bool


@_op(f"roi_align({_POOL}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor")
def _roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    _check_rois(input, rois)
    size = (input.size(2), input.size(3))
    pooled = (pooled_height, pooled_width)
    result = input.new_empty(len(rois), input.size(1), *pooled)
    how = _Alignment(sampling_ratio, aligned)
    for region in _aligned(rois, spatial_scale, pooled, size, how):
        part = _accurate(input[region.image, :, region.rows, region.columns])
        result[region.number] = region.by_row @ part @ region.by_column.T
    return result


@_op(
    f"_roi_align_backward({_GRAD}, float spatial_scale, {_SIZES}, {_IMAGE}, int sampling_ratio, "
    "bool aligned) -> Tensor"
)
def _roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    result = _accurate(grad.new_zeros(batch_size, channels, height, width))
    how = _Alignment(sampling_ratio, aligned)
    pooled, size = (pooled_height, pooled_width), (height, width)
    for region in _aligned(rois, spatial_scale, pooled, size, how):
        part = region.by_row.T @ _accurate(grad[region.number]) @ region.by_column
        result[region.image, :, region.rows, region.columns] += part
    return result.to(grad.dtype)


def _ps_channels(rois: Tensor, channels: int, pooled: tuple[int, int]) -> tuple[Tensor, int]:
    """Which channel of the image each bin of each channel of the result reads."""
    if channels % (pooled[0] * pooled[1]):
        raise RuntimeError(
            f"input channels must be a multiple of pooling height * pooling width, got {channels} "
            f"and {pooled}"
        )
    groups = channels // (pooled[0] * pooled[1])
    mapping = torch.arange(channels, dtype=torch.int32).view(groups, *pooled)
    return mapping.expand(len(rois), -1, -1, -1).contiguous(), groups


def _ps_forward(
    input: Tensor, rois: Tensor, pooled: tuple[int, int], regions: Any
) -> tuple[Tensor, Tensor]:
    mapping, groups = _ps_channels(rois, input.size(1), pooled)
    result = input.new_zeros(len(rois), groups, *pooled)
    for region in regions:
        part = _accurate(input[region.image, :, region.rows, region.columns])
        part = part.unflatten(0, (groups, *pooled))
        result[region.number] = torch.einsum(
            "cpqyx,py,qx->cpq", part, region.by_row, region.by_column
        )
    return result, mapping


def _ps_backward(grad: Tensor, sizes: Any, pooled: tuple[int, int], regions: Any) -> Tensor:
    result = _accurate(grad.new_zeros(sizes))
    for region in regions:
        part = torch.einsum(
            "cpq,py,qx->cpqyx", _accurate(grad[region.number]), region.by_row, region.by_column
        )
        result[region.image, :, region.rows, region.columns] += part.flatten(0, 2)
    return result.to(grad.dtype)


@_op(f"ps_roi_align({_POOL}, {_SIZES}, int sampling_ratio) -> (Tensor, Tensor)")
def _ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    _check_rois(input, rois)
    pooled = (pooled_height, pooled_width)
    size = (input.size(2), input.size(3))
    regions = _aligned(rois, spatial_scale, pooled, size, _Alignment(sampling_ratio, True))
    return _ps_forward(input, rois, pooled, regions)


@_op(
    f"_ps_roi_align_backward({_GRAD}, Tensor channel_mapping, float spatial_scale, {_SIZES}, "
    f"int sampling_ratio, {_IMAGE}) -> Tensor"
)
def _ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    pooled = (pooled_height, pooled_width)
    how = _Alignment(sampling_ratio, True)
    regions = _aligned(rois, spatial_scale, pooled, (height, width), how)
    return _ps_backward(grad, (batch_size, channels, height, width), pooled, regions)


def _rounded(boxes: Tensor) -> Tensor:
    """Whole numbers, halves away from zero as C rounds them."""
    return torch.where(boxes < 0, (boxes - 0.5).ceil(), (boxes + 0.5).floor())


def _bins(start: float, length: float, pooled: int, size: int) -> list[slice]:
    """Which rows each bin has, where bins may overlap by one row."""
    width = length / pooled
    found = []
    for place in range(pooled):
        ends = (math.floor(place * width), math.ceil((place + 1) * width))
        begin, end = (min(max(int(start) + end, 0), size) for end in ends)
        found.append(slice(begin, max(begin, end)))
    return found


def _bin_weights(boxes: Tensor, axis: int, pooled: int, size: int) -> Tensor:
    weights = boxes.new_zeros(len(boxes), pooled, size)
    for number, box in enumerate(boxes.tolist()):
        start, length = box[axis], max(box[2 + axis] - box[axis], 1)
        # (The last row and the last column are never read.)
        for place, rows in enumerate(_bins(start, length, pooled, size - 1)):
            if rows.stop > rows.start:
                weights[number, place, rows] = 1.0 / (rows.stop - rows.start)
    return weights


def _pooled_regions(
    rois: Tensor, scale: float, pooled: tuple[int, int], size: tuple[int, int]
) -> Iterator[_Region]:
    boxes = _rounded(_accurate(rois)[:, 1:] * scale)
    by_row = _bin_weights(boxes, 1, pooled[0], size[0])
    return _regions(rois, by_row, _bin_weights(boxes, 0, pooled[1], size[1]))


@_op(f"ps_roi_pool({_POOL}, {_SIZES}) -> (Tensor, Tensor)")
def _ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    _check_rois(input, rois)
    pooled = (pooled_height, pooled_width)
    size = (input.size(2), input.size(3))
    regions = _pooled_regions(rois, spatial_scale, pooled, size)
    return _ps_forward(input, rois, pooled, regions)


@_op(
    f"_ps_roi_pool_backward({_GRAD}, Tensor channel_mapping, float spatial_scale, {_SIZES}, "
    f"{_IMAGE}) -> Tensor"
)
def _ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    pooled = (pooled_height, pooled_width)
    regions = _pooled_regions(rois, spatial_scale, pooled, (height, width))
    return _ps_backward(grad, (batch_size, channels, height, width), pooled, regions)


@_op(f"roi_pool({_POOL}, {_SIZES}) -> (Tensor, Tensor)")
def _roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest value of each bin, and its place in the image; 0 and -1 of an empty bin."""
    _check_rois(input, rois)
    height, width = input.size(2), input.size(3)
    shape = (len(rois), input.size(1), pooled_height, pooled_width)
    result = input.new_zeros(shape)
    places = torch.full(shape, -1, dtype=torch.int32)
    boxes = _rounded(_accurate(rois)[:, 1:] * spatial_scale).tolist()
    images = rois[:, 0].long().tolist()
    for number, (image, (left, top, right, bottom)) in enumerate(zip(images, boxes, strict=True)):
        rows = _bins(top, max(bottom - top + 1, 1), pooled_height, height)
        columns = _bins(left, max(right - left + 1, 1), pooled_width, width)
        for y, of_y in enumerate(rows):
            for x, of_x in enumerate(columns):
                part = input[image, :, of_y, of_x]
                if part.numel() == 0:
                    continue
                best, place = part.flatten(1).max(1)
                breadth = of_x.stop - of_x.start
                row = of_y.start + place // breadth
                result[number, :, y, x] = best
                places[number, :, y, x] = (row * width + of_x.start + place % breadth).int()
    return result, places


@_op(
    f"_roi_pool_backward({_GRAD}, Tensor argmax, float spatial_scale, {_SIZES}, {_IMAGE}) -> Tensor"
)
def _roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    result = grad.new_zeros(batch_size, channels, height * width)
    for number, image in enumerate(rois[:, 0].long().tolist()):
        places = argmax[number].flatten(1).long()
        values = torch.where(places < 0, 0, grad[number].flatten(1))
        result[image].scatter_add_(1, places.clamp(min=0), values)
    return result.view(batch_size, channels, height, width)


# ---- deformable convolution ----


def _sampled(input: Tensor, places: Tensor) -> Tensor:
    """Pixels at places between them, ``(n, h, w, 2)`` as (row, column); zero outside."""
    sizes = torch.tensor([input.size(2), input.size(3)], dtype=places.dtype)
    grid = ((2 * places + 1) / sizes - 1).flip(-1)
    return torch.nn.functional.grid_sample(input, grid, align_corners=False)


def _convolved(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """The convolution as a product of its weights with the image at the displaced places."""
    kernel = (weight.size(2), weight.size(3))
    count = kernel[0] * kernel[1]
    n, out = input.size(0), (offset.size(2), offset.size(3))
    taps = torch.stack(
        torch.meshgrid(
            *(torch.arange(k) * d for k, d in zip(kernel, dilation, strict=True)), indexing="ij"
        ),
        -1,
    ).view(count, 1, 1, 2)
    starts = torch.stack(
        torch.meshgrid(
            *(torch.arange(o) * s - p for o, s, p in zip(out, stride, padding, strict=True)),
            indexing="ij",
        ),
        -1,
    )
    moved = offset.view(n, offset_groups, count, 2, *out).permute(0, 1, 2, 4, 5, 3)
    places = (taps + starts).to(input.dtype) + moved
    columns = _sampled(
        input.reshape(n * offset_groups, -1, *input.shape[2:]),
        places.reshape(n * offset_groups, count * out[0], out[1], 2),
    ).view(n, offset_groups, -1, count, *out)
    if use_mask:
        columns = columns * mask.view(n, offset_groups, 1, count, *out)
    columns = columns.reshape(n, groups, -1, out[0] * out[1])
    result = weight.reshape(groups, weight.size(0) // groups, -1) @ columns
    return result.view(n, -1, *out) + bias.view(1, -1, 1, 1)


def _conv_arguments(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, *rest = numbers
    return ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), *rest)


@_op(f"deform_conv2d({_CONV}) -> Tensor")
def _deform_conv2d(*args: Any) -> Tensor:
    return _convolved(*args[:5], *_conv_arguments(args[5:]))


@_op(f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
def _deform_conv2d_backward(grad: Tensor, *args: Any) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        tensors = [tensor.detach().requires_grad_() for tensor in args[:5]]
        result = _convolved(*tensors, *_conv_arguments(args[5:]))
        return torch.autograd.grad(result, tensors, grad, materialize_grads=True)


# ---- gradients (later versions of torchvision register the same themselves) ----


def _register_pool(name: str, extra: int) -> None:
    """The gradient of a pool with ``extra`` numbers after its sizes."""

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        image, rois, *ctx.numbers = inputs
        ctx.sizes = image.shape
        ctx.save_for_backward(rois, *(output[1:] if isinstance(output, tuple) else ()))

    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> Any:
        op = getattr(torch.ops.torchvision, f"_{name}_backward")
        numbers = ctx.numbers
        # (The sizes of the image stand before what comes last, but for one op.)
        at = 4 if name == "ps_roi_align" else 3
        given = (*numbers[:at], *ctx.sizes, *numbers[at:])
        return (op(grad, *ctx.saved_tensors, *given), *[None] * (4 + extra))

    library.register_autograd(f"torchvision::{name}", backward, setup_context=setup_context)


for _name, _extra in (("roi_align", 2), ("roi_pool", 0), ("ps_roi_align", 1), ("ps_roi_pool", 0)):
    _register_pool(_name, _extra)


def _save_convolution(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.numbers = inputs[5:]


def _convolution_backward(ctx: Any, grad: Tensor) -> Any:
    op = torch.ops.torchvision._deform_conv2d_backward
    return (*op(grad, *ctx.saved_tensors, *ctx.numbers), *[None] * 9)


library.register_autograd(
    "torchvision::deform_conv2d", _convolution_backward, setup_context=_save_convolution
)
