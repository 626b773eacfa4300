"""Names for a backend of one's own, which cannot be added: there is no C++ interface for it."""

from __future__ import annotations

from .. import _placeholder

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

rename_privateuse1_backend = _placeholder.made(
    "torch.utils.backend_registration.rename_privateuse1_backend", "function"
)
generate_methods_for_privateuse1_backend = _placeholder.made(
    "torch.utils.backend_registration.generate_methods_for_privateuse1_backend", "function"
)
