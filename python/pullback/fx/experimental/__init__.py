"""PyTorch's experiments with graphs; none is here."""

from __future__ import annotations

from ... import _absent

_absent.announce(globals())
