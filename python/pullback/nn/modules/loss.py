"""Losses as modules: each holds the options of one function of ``functional``.

Invariant: no state but options and, where classes are weighted, the buffer ``weight``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .._reduction import resolved
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """What all losses share.

    Args:
        size_average: deprecated, like ``reduce``; see ``reduction``.
        reduce: see there.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
    """

    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = resolved(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    """A loss with a buffer ``weight``.

    Args:
        weight: factors, or ``None``.
        size_average: deprecated, like ``reduce``; see ``reduction``.
        reduce: see there.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|input - target|``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """``(input - target)**2``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared below ``beta``, linear above; see ``functional.smooth_l1_loss``."""

    beta: float

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared up to ``delta``, linear above; see ``functional.huber_loss``."""

    delta: float

    def __init__(
        self,
        reduction: str = "mean",
        delta: float = 1.0,
    ) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """``-input[target]`` for log-probabilities ``(N, C, *)``, reduced."""

    ignore_index: int

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The former name of :class:`NLLLoss` for images."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """``-log(softmax(input)[target])`` for logits ``(N, C, *)``, reduced.

    Args:
        weight: a factor for each class.
        size_average: deprecated, like ``reduce``; see ``reduction``.
        ignore_index: targets of this index do not contribute.
        reduce: see ``reduction``.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        label_smoothing: in [0, 1]: how far targets are mixed with the uniform distribution.
    """

    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss for class indices ``(N, *)`` or probabilities of the input's shape."""
        return F.cross_entropy(
            input,
            target,
            self._buffers.get("weight"),
            None,
            self.ignore_index,
            None,
            self.reduction,
            self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of ``sigmoid(input)``, computed without overflow; reduced.

    Args:
        weight: factors, broadcast against the input.
        size_average: deprecated, like ``reduce``; see ``reduction``.
        reduce: see there.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        pos_weight: factors of the positive term, broadcast against the target.
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """``target (log(target) - input)``, reduced; ``'batchmean'`` is the divergence."""

    log_target: bool

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under a Poisson law, reduced."""

    log_input: bool
    full: bool
    eps: float

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log likelihood under a normal law, reduced."""

    full: bool
    eps: float

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """``x`` for target 1, ``max(0, margin - x)`` for target -1; reduced."""

    margin: float

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target input))``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge of every class that is no target against every one that is; reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        result: Tensor = F.multilabel_margin_loss(input, target, reduction=self.reduction)
        return result


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean of one binary cross entropy per class, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """``1 - cos`` for target 1, ``max(0, cos - margin)`` for target -1; reduced."""

    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """``max(0, -target (input1 - input2) + margin)``, reduced."""

    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """The hinge of every wrong class against the right one; reduced."""

    p: int
    margin: float

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, "
                f"got {weight.dim()}D instead"
            )
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)`` for the ``p``-norm distance; reduced."""

    margin: float
    p: float
    eps: float
    swap: bool

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` for any distance.

    Args:
        distance_function: takes two tensors; default :class:`PairwiseDistance`.
        margin: by how much the negative is to be farther; positive.
        swap: whether the smaller of the two distances to the negative counts.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
    """

    margin: float
    swap: bool

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                f"got {margin} instead"
            )
        self.distance_function: Any = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss, a scalar unless ``reduction`` is ``'none'``."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Minus the log-probability of a sequence of labels, over all its alignments; reduced.

    Args:
        blank: the label that stands for none.
        reduction: ``'none'``, ``'mean'`` (each loss over the length of its target first) or
            ``'sum'``.
        zero_infinity: whether infinite losses (targets too long for the input) become 0.
    """

    blank: int
    zero_infinity: bool

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """The loss of log-probabilities ``(T, N, C)`` or ``(T, C)``."""
        result: Tensor = F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
        return result


class LinearCrossEntropyLoss(_WeightedLoss):
    """:class:`CrossEntropyLoss` of the logits that a linear layer of its own gives.

    Args:
        in_features: features of the input.
        num_classes: how many classes there are, ``C``.
        out_features: the sizes ``(d_1, ...)`` of a loss of several dimensions.
        bias: whether the layer adds a bias.
        device: where the parameters are made.
        dtype: of the parameters.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        weight: a factor for each class.
        ignore_index: targets of this index do not contribute; -100 unless given.
        label_smoothing: how far targets are mixed with the uniform distribution.
        options: how the rows are taken in chunks; without, all at once.
    """

    in_features: int
    num_classes: int
    out_features: tuple[int, ...]
    ignore_index: int | None
    label_smoothing: float

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        width = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, width, bias=bias, device=device, dtype=dtype)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of ``(N, in_features)`` or ``(in_features)``."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
