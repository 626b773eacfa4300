"""The generator of the files that the op registry determines: type stubs and the page of ops.

It is a tool for developers, run as ``python -m pullback._gen`` in a clone, and no part of the
wheel. What it knows of ops comes from ``_C._describe_ops()``; what is no op is in the template
``extension.pyi.txt``. ``stub`` and ``page`` make texts, ``__main__`` writes or compares them.
"""
