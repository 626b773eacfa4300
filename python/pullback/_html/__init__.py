"""The HTML that notebooks show of tensors, modules and graphs: their ``_repr_html_``.

``tensor``, ``module`` and ``graph`` each make one self-contained piece of HTML, without scripts and
without anything that is loaded; ``page`` has what they share. Loaded when a notebook first asks.
Invariants: whatever text comes from a program is escaped; nothing is recorded, no version counter
and no random state changes, no class or mode is asked for ops; the length is bounded, however
large what is shown. Start with ``tensor.py``.
"""

from __future__ import annotations

from .graph import node_html
from .module import module_html
from .tensor import tensor_html

__all__ = ["module_html", "node_html", "tensor_html"]
