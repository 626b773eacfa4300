"""``memory_budget``: a limit on memory, kept by giving up values that are saved for backward.

How it works. Inside of the region two things watch the thread: hooks on saved tensors put a
*handle* into the graph in the place of each tensor that an op saves (``store``), and a dispatch
mode sees each op before and after it runs (``watch``). The mode only watches: the library takes the
same ways, and computes the same bits, as without it. For each storage that an op fills there is a
*record* of how that was done: the op, its arguments, the state of the generator if it draws random
numbers (``record``). A write makes a new record of the same storage, whose recipe begins with a
copy of what was there before.

Before an op runs, the bytes of its results are found by its rule for shapes (on the meta device,
once for each shape). If these and what the allocator holds are more than the limit, tensors that
handles keep are given up until there is room. Given up first is what costs least time per byte and
has not been used for longest: what early layers saved is wanted last by a backward pass. When
backward asks for it, it is computed again from what is there, through as many records as it takes.
This is dynamic tensor rematerialization (M. Kirisame et al., ICLR 2021), whose cost is the time
that the op took plus that of those before it that are not there either.

What is never given up: parameters and other leaves, what existed before the region, what the
program holds itself (nothing would be freed), what an array shares memory with, and what depends on
a value that was written to since and cannot be had again. A value from outside of the region that
is about to be written to is copied first if something that was given up depends on it.

Invariant: a value that was computed again has the bits that were saved, or there is an error.
Start with ``region``.
"""

from __future__ import annotations

__all__: list[str] = []
