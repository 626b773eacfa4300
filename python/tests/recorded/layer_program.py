"""Layers, how each is made and what it is given: one program for PyTorch and for pullback.

`run` makes a layer under a seed and gives what it looks like: its printed form, its state dict, its
output and the gradients of its inputs, all as projections on sampled sines. `record_layers.py`
keeps what PyTorch gives; `nn/test_recorded_layer.py` compares.
"""

from __future__ import annotations

import math
import warnings
from types import ModuleType
from typing import Any

# How a layer is made, and what it is called with. `x(shape)` is a sampled sine that wants a
# gradient, `d` a dropout-free option, `i(values)` integers.
CASES = {
    "Conv3d": ("nn.Conv3d(4, 6, 3, stride=2, padding=1, groups=2)", "x(2, 4, 5, 4, 3)"),
    "Conv3d, same": (
        "nn.Conv3d(2, 3, 3, padding='same', padding_mode='circular')",
        "x(1, 2, 3, 4, 5)",
    ),
    "ConvTranspose1d": ("nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2)", "x(2, 4, 5)"),
    "ConvTranspose1d, size": ("nn.ConvTranspose1d(2, 3, 3, 2, bias=False)", "x(2, 2, 4), [10]"),
    "ConvTranspose2d": ("nn.ConvTranspose2d(4, 2, (3, 2), 2, dilation=2)", "x(2, 4, 3, 4)"),
    "ConvTranspose2d, unbatched": ("nn.ConvTranspose2d(4, 2, 3, 2)", "x(4, 3, 4), [2, 8, 9]"),
    "ConvTranspose3d": ("nn.ConvTranspose3d(2, 2, 2, 2, output_padding=1)", "x(1, 2, 2, 3, 2)"),
    "MaxPool3d": ("nn.MaxPool3d(2, 1, return_indices=True)", "x(1, 2, 3, 4, 3)"),
    "AvgPool3d": ("nn.AvgPool3d(2, 2, 1, True, False)", "x(1, 2, 3, 4, 3)"),
    "AvgPool3d, divisor": ("nn.AvgPool3d(2, divisor_override=3)", "x(2, 4, 4, 2)"),
    "AdaptiveAvgPool3d": ("nn.AdaptiveAvgPool3d((2, None, 1))", "x(1, 2, 3, 4, 3)"),
    "AdaptiveMaxPool1d": ("nn.AdaptiveMaxPool1d(3)", "x(2, 3, 7)"),
    "AdaptiveMaxPool2d": ("nn.AdaptiveMaxPool2d((2, 3), True)", "x(2, 3, 5, 7)"),
    "AdaptiveMaxPool3d": ("nn.AdaptiveMaxPool3d(2)", "x(1, 2, 3, 4, 5)"),
    "MaxUnpool1d": ("nn.MaxUnpool1d(2)", "x(1, 1, 3), i([[[1, 2, 4]]])"),
    "MaxUnpool2d": (
        "nn.MaxUnpool2d(2, 2)",
        "x(1, 1, 2, 2), i([[[[1, 3], [9, 10]]]]), [1, 1, 4, 5]",
    ),
    "MaxUnpool3d": (
        "nn.MaxUnpool3d(2)",
        "x(1, 1, 1, 2, 2), i([[[[[0, 2], [8, 31]]]]])",
    ),
    "FractionalMaxPool2d": (
        "nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.6), _random_samples=s(1, 2, 2))",
        "x(1, 2, 7, 6)",
    ),
    "FractionalMaxPool3d": (
        "nn.FractionalMaxPool3d(2, 2, _random_samples=s(1, 2, 3))",
        "x(1, 2, 4, 5, 6)",
    ),
    "LPPool1d": ("nn.LPPool1d(3, 2)", "x(1, 2, 6).abs()"),
    "LPPool2d": ("nn.LPPool2d(2, (2, 3), stride=1, ceil_mode=True)", "x(1, 2, 4, 5)"),
    "LPPool3d": ("nn.LPPool3d(2, 2)", "x(1, 2, 4, 4, 2)"),
    "Upsample": ("nn.Upsample((4, 5))", "x(1, 2, 2, 3)"),
    "Upsample, linear": (
        "nn.Upsample(scale_factor=1.5, mode='linear', align_corners=True)",
        "x(1, 2, 5)",
    ),
    "Upsample, bicubic": ("nn.Upsample(scale_factor=(2, 3), mode='bicubic')", "x(1, 2, 3, 4)"),
    "Upsample, trilinear": ("nn.Upsample(size=3, mode='trilinear')", "x(1, 2, 2, 2, 5)"),
    "UpsamplingNearest2d": ("nn.UpsamplingNearest2d(scale_factor=2)", "x(1, 2, 2, 3)"),
    "UpsamplingBilinear2d": ("nn.UpsamplingBilinear2d(size=5)", "x(1, 2, 2, 3)"),
    "Fold": ("nn.Fold((4, 5), (2, 3), padding=1, stride=2)", "x(1, 12, 9)"),
    "Unfold": ("nn.Unfold((2, 3), dilation=2, padding=1)", "x(1, 2, 4, 6)"),
    "CTCLoss": (
        "nn.CTCLoss()",
        "x(6, 2, 4).log_softmax(-1), i([[1, 2, 3], [2, 2, 1]]), i([6, 5]), i([3, 2])",
    ),
    "CTCLoss, sum": (
        "nn.CTCLoss(blank=3, reduction='sum', zero_infinity=True)",
        "x(3, 2, 4).log_softmax(-1), i([0, 0, 1, 2, 0]), (3, 3), (2, 3)",
    ),
    "RReLU": ("nn.RReLU(0.2, 0.4).eval()", "x(3, 4)"),
    "RReLU, training": ("nn.RReLU(0.2, 0.4)", "x(3, 4)"),
    "MultiLabelMarginLoss": (
        "nn.MultiLabelMarginLoss(reduction='none')",
        "x(2, 4), i([[1, 3, -1, 0], [2, -1, 0, 1]])",
    ),
    "MultiLabelMarginLoss, one": ("nn.MultiLabelMarginLoss()", "x(4), i([3, 0, -1, 1])"),
    "NLLLoss2d": ("nn.NLLLoss2d()", "x(1, 3, 2, 2).log_softmax(1), i([[[0, 1], [2, 2]]])"),
    "ChannelShuffle": ("nn.ChannelShuffle(3)", "x(2, 6, 2, 2)"),
    "LocalResponseNorm": ("nn.LocalResponseNorm(3, 0.5, 0.6, 2.0)", "x(2, 5, 3)"),
    "LocalResponseNorm, images": ("nn.LocalResponseNorm(4, 0.5)", "x(2, 7, 2, 3)"),
    "CrossMapLRN2d": ("nn.CrossMapLRN2d(3, 0.5, 0.6, 2.0)", "x(2, 7, 2, 3).detach()"),
    "SyncBatchNorm": ("nn.SyncBatchNorm(3)", "x(4, 3)"),
    "Bilinear": ("nn.Bilinear(3, 4, 2)", "x(5, 3), x(5, 4)"),
    "LinearCrossEntropyLoss": ("nn.LinearCrossEntropyLoss(3, 5)", "x(4, 3), i([1, 0, 4, 2])"),
    "LinearCrossEntropyLoss, several": (
        "nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True, reduction='sum')",
        "x(2, 3), i([[1, 0], [3, 2]])",
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        "nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True)",
        "x(5, 8), i([0, 4, 11, 2, 8])",
    ),
    "AdaptiveLogSoftmaxWithLoss, one": (
        "nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7])",
        "x(8), i(9)",
    ),
    "InstanceNorm3d": ("nn.InstanceNorm3d(2, track_running_stats=True)", "x(2, 2, 2, 3, 2)"),
    "LazyLinear": ("nn.LazyLinear(3)", "x(2, 5)"),
    "LazyConv1d": ("nn.LazyConv1d(4, 3, groups=2)", "x(2, 4, 5)"),
    "LazyConv2d": ("nn.LazyConv2d(4, 3, bias=False, padding='same')", "x(2, 3, 5, 4)"),
    "LazyConv3d": ("nn.LazyConv3d(2, 2)", "x(1, 3, 3, 3, 2)"),
    "LazyConvTranspose1d": ("nn.LazyConvTranspose1d(4, 3, 2, output_padding=1)", "x(2, 3, 4)"),
    "LazyConvTranspose2d": ("nn.LazyConvTranspose2d(4, 3, groups=2)", "x(2, 6, 3, 4)"),
    "LazyConvTranspose3d": ("nn.LazyConvTranspose3d(2, 2)", "x(1, 3, 2, 2, 2)"),
    "LazyBatchNorm1d": ("nn.LazyBatchNorm1d()", "x(4, 3)"),
    "LazyBatchNorm2d": ("nn.LazyBatchNorm2d(affine=False)", "x(2, 3, 2, 2)"),
    "LazyBatchNorm3d": ("nn.LazyBatchNorm3d(track_running_stats=False)", "x(2, 3, 2, 2, 2)"),
    "LazyInstanceNorm1d": ("nn.LazyInstanceNorm1d()", "x(2, 3, 4)"),
    "LazyInstanceNorm2d": ("nn.LazyInstanceNorm2d(affine=False)", "x(2, 3, 2, 3)"),
    "LazyInstanceNorm3d": ("nn.LazyInstanceNorm3d(momentum=0.3)", "x(2, 3, 2, 3, 2)"),
    "MultiheadAttention": (
        "nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)",
        "x(2, 3, 8), x(2, 4, 8), x(2, 4, 8)",
    ),
    "TransformerEncoderLayer": (
        "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)",
        "x(3, 2, 8), None, b([[0, 0, 1], [0, 0, 0]])",
    ),
    "TransformerEncoderLayer, norm first": (
        "nn.TransformerEncoderLayer(8, 4, 16, 0.0, 'gelu', norm_first=True, bias=False)",
        "x(3, 2, 8), nn.Transformer.generate_square_subsequent_mask(3)",
    ),
    "TransformerEncoderLayer, dropout": ("nn.TransformerEncoderLayer(8, 2, 16)", "x(3, 2, 8)"),
    "TransformerDecoderLayer": (
        "nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)",
        "x(2, 3, 8), x(2, 4, 8)",
    ),
    "TransformerDecoderLayer, norm first": (
        "nn.TransformerDecoderLayer(8, 2, 16, norm_first=True)",
        "x(3, 2, 8), x(4, 2, 8), b([[0, 1, 1], [0, 0, 1], [0, 0, 0]])",
    ),
    "TransformerEncoder": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2, nn.LayerNorm(8))",
        "x(3, 2, 8)",
    ),
    "TransformerEncoder, evaluation": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)"
        ".requires_grad_(False).eval()",
        "x(2, 4, 8).detach(), None, b([[0, 0, 0, 1], [0, 0, 1, 1]])",
    ),
    "TransformerEncoder, padding before": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)"
        ".requires_grad_(False).eval()",
        "x(2, 4, 8).detach(), None, b([[1, 0, 0, 0], [1, 1, 0, 0]])",
    ),
    "TransformerDecoder": (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2)",
        "x(3, 2, 8), x(4, 2, 8)",
    ),
    "Transformer": (
        "nn.Transformer(8, 2, 2, 1, 16, 0.0)",
        "x(3, 2, 8), x(4, 2, 8), None, nn.Transformer.generate_square_subsequent_mask(4)",
    ),
    "Transformer, dropout": (
        "nn.Transformer(8, 2, 1, 2, 16, batch_first=True, norm_first=True)",
        "x(2, 3, 8), x(2, 4, 8)",
    ),
    "weight_norm": (
        "P.weight_norm(nn.Conv1d(3, 4, 2))",
        "x(2, 3, 4)",
    ),
    "weight_norm, last": ("P.weight_norm(nn.Linear(3, 4), dim=1)", "x(2, 3)"),
    "weight_norm, all": ("P.weight_norm(nn.Linear(3, 4), dim=None)", "x(2, 3)"),
    "weight_norm, hooks": ("U.weight_norm(nn.Linear(3, 4))", "x(2, 3)"),
    "spectral_norm": ("P.spectral_norm(nn.Linear(3, 4), n_power_iterations=2)", "x(2, 3)"),
    "spectral_norm, transposed": ("P.spectral_norm(nn.ConvTranspose1d(3, 2, 2))", "x(1, 3, 4)"),
    "spectral_norm, hooks": ("U.spectral_norm(nn.Conv2d(2, 3, 2), eps=1e-6)", "x(1, 2, 3, 3)"),
    "orthogonal, exponential": ("P.orthogonal(nn.Linear(3, 3))", "x(2, 3)"),
    "orthogonal, Cayley": ("P.orthogonal(nn.Linear(4, 3), orthogonal_map='cayley')", "x(2, 4)"),
    "orthogonal, reflections": ("P.orthogonal(nn.Linear(4, 3))", "x(2, 4)"),
    "pruned at random": ("prune.random_unstructured(nn.Linear(4, 3), 'weight', 5)", "x(2, 4)"),
    "pruned by magnitude": ("prune.l1_unstructured(nn.Linear(4, 3), 'weight', 0.5)", "x(2, 4)"),
    "pruned slices": (
        "prune.random_structured(prune.ln_structured(nn.Conv2d(3, 4, 2), 'weight', 2, 2, 0), "
        "'weight', 1, 1)",
        "x(1, 3, 3, 3)",
    ),
    "pruned twice": (
        "prune.l1_unstructured(prune.random_unstructured(nn.Linear(5, 4), 'weight', 7), "
        "'weight', 0.5)",
        "x(2, 5)",
    ),
}


def ramp(torch: Any, *shape: int) -> Any:
    """A sampled sine of a shape."""
    return (torch.arange(float(math.prod(shape))) * 0.37).sin().reshape(shape)


def projection(torch: Any, tensor: Any) -> float:
    """A tensor as one number that every element changes."""
    flat = tensor.detach().reshape(-1).double()
    weights = ramp(torch, flat.numel()).double() + 0.1
    return float(f"{float((flat * weights).sum()):.7g}")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _flat(part)]
    return [] if value is None else [value]


def run(torch: ModuleType, name: str) -> dict[str, Any]:
    """What a layer looks like."""
    from importlib import import_module

    make, call = CASES[name]
    inputs: list[Any] = []

    def x(*shape: int) -> Any:
        inputs.append(ramp(torch, *shape).requires_grad_())
        return inputs[-1]

    space = {
        "nn": torch.nn,
        "x": x,
        "i": torch.tensor,
        "b": lambda values: torch.tensor(values).bool(),
        "s": lambda *shape: ramp(torch, *shape).abs() * 0.9,
        "U": torch.nn.utils,
        "P": torch.nn.utils.parametrizations,
        "prune": import_module(f"{torch.__name__}.nn.utils.prune"),
    }
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = eval(make, space)
        made = {
            key: list(value.shape)
            for key, value in layer.state_dict().items()
            if "Uninitialized" not in type(value).__name__
        }
        text = repr(layer)
        outputs = _flat(eval(f"layer({call})", space, {"layer": layer}))
    record: dict[str, Any] = {"text": text, "made": made, "after": repr(layer)}
    record["state"] = {
        key: [list(value.shape), projection(torch, value)]
        for key, value in layer.state_dict().items()
    }
    record["versions"] = {
        key: value["version"] for key, value in layer.state_dict()._metadata.items()
    }
    record["outputs"] = [[list(out.shape), projection(torch, out)] for out in outputs]
    wanted = [out for out in outputs if out.requires_grad]
    if wanted:
        total = sum((out.reshape(-1) * ramp(torch, out.numel())).sum() for out in wanted)
        total.backward()
        tensors = [*inputs, *layer.parameters()]
        record["gradients"] = [
            None if each.grad is None else projection(torch, each.grad) for each in tensors
        ]
    return record
