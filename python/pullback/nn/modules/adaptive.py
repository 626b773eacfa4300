"""The adaptive softmax: rare classes in clusters of fewer features (Grave et al. 2017).

The head scores the frequent classes and one entry for each cluster; within a cluster a projection
to fewer features scores its classes. Invariant: ``cutoffs`` ends with the number of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..._tensor import Tensor
from .._native import VF as _VF
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each row's target, and their mean with the other sign."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-softmax over many classes whose frequencies differ much, and its loss.

    Args:
        in_features: features of the input.
        n_classes: how many classes there are, the most frequent first.
        cutoffs: where clusters begin; classes before the first are in the head.
        div_value: cluster ``i`` (from 0) has ``in_features // div_value**(i + 1)`` features.
        head_bias: whether the head adds a bias.
        device: where the parameters are made.
        dtype: of the parameters.

    Raises:
        ValueError: cutoffs that do not rise from 1 to at most ``n_classes - 1``.
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_cutoffs(list(cutoffs), n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for cluster in range(self.n_clusters):
            features = int(in_features // div_value ** (cluster + 1))
            width = self.cutoffs[cluster + 1] - self.cutoffs[cluster]
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **options),
                    Linear(features, width, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws the parameters anew: the head, then the clusters in order."""
        self.head.reset_parameters()
        for cluster in self.tail.modules():
            if isinstance(cluster, Linear):
                cluster.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of the targets, and the loss.

        Args:
            input_: ``(N, in_features)`` or ``(in_features)``.
            target_: classes ``(N)`` or ``()``.

        Returns:
            ``output`` of the target's shape, ``loss``: minus its mean.

        Raises:
            RuntimeError: shapes do not agree, or a target is no class.
        """
        _check_shapes(input_, target_)
        batched = target_.dim() > 0
        rows = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        # The head's entry for a row: its class, or that of its cluster.
        entries = _VF.zeros_like(target)
        known = 0
        lows = [0, *self.cutoffs[:-1]]
        parts = []
        for cluster, (low, high) in enumerate(zip(lows, self.cutoffs, strict=True)):
            where: Any = ((target >= low) & (target < high)).nonzero()
            where = where.squeeze(1)
            if where.numel() == 0:
                continue
            known += where.numel()
            inside = target.index_select(0, where) - low
            if cluster == 0:
                entries = entries.index_copy(0, where, inside)
                continue
            entries = entries.index_fill(0, where, self.shortlist_size + cluster - 1)
            scores = self.tail[cluster - 1](rows.index_select(0, where)).log_softmax(1)
            parts.append((where, scores.gather(1, inside.unsqueeze(1)).squeeze(1)))
        if known != len(target):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        output = self.head(rows).log_softmax(1).gather(1, entries.unsqueeze(1)).squeeze(1)
        for where, scores in parts:
            output = output.index_add(0, where, scores)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """All log-probabilities, by the head's scores."""
        head = head_output.log_softmax(1)
        columns = [head[:, : self.shortlist_size]]
        for cluster, scores in enumerate(self.tail):
            own = scores(input).log_softmax(1)
            columns.append(own + head[:, self.shortlist_size + cluster].unsqueeze(1))
        joined: Tensor = _VF.cat(columns, 1)
        return joined

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: ``(N, in_features)`` to ``(N, n_classes)``."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: ``(N, in_features)`` to ``(N)``.

        Clusters are computed only for the rows whose best entry of the head is one.
        """
        scores = self.head(input)
        output: Tensor = scores.argmax(1)
        rare: Any = (output >= self.shortlist_size).nonzero()
        rare = rare.squeeze(1)
        if rare.numel() == 0:
            return output
        best = self._get_full_log_prob(input.index_select(0, rare), scores.index_select(0, rare))
        return output.index_copy(0, rare, best.argmax(1))


def _check_cutoffs(cutoffs: list[Any], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    rising = all(a < b for a, b in pairwise(cutoffs))
    inside = cutoffs[0] > 0 and cutoffs[-1] <= n_classes - 1
    if not (rising and inside and all(int(cut) == cut for cut in cutoffs)):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
            "order, where each value is between 1 and n_classes-1"
        )


def _check_shapes(input: Tensor, target: Tensor) -> None:
    dims = target.dim()
    if dims > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dims == 1:
        if input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != 2:
            raise RuntimeError(
                f"1D target tensor expects 2D input tensors, but found inputs with size "
                f"{input.shape}"
            )
    elif input.dim() != 1:
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with size {input.shape}"
        )
