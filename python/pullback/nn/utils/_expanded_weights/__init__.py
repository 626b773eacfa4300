"""Parameters whose gradients are kept for each sample of a batch.

``expanded_weights_impl`` has the tensor, ``_rules`` the gradients of each function for each sample,
``_recurrent`` the layers of recurrent networks in terms of those. ``_per_sample_grad`` of the
package above makes a module's parameters such tensors for one call: start there.
"""

from . import _rules  # noqa: F401  (it registers the rules)
from .expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
