"""Copies between devices: `pullback.nn.parallel.comm` by another name."""

from ..nn.parallel.comm import broadcast as broadcast
from ..nn.parallel.comm import broadcast_coalesced as broadcast_coalesced
from ..nn.parallel.comm import gather as gather
from ..nn.parallel.comm import reduce_add as reduce_add
from ..nn.parallel.comm import reduce_add_coalesced as reduce_add_coalesced
from ..nn.parallel.comm import scatter as scatter

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]
