"""The generator of the files that the library determines: type stubs, tables, pictures, charts.

It is a tool for developers, run as ``python -m pullback._gen`` in a clone, and no part of the
wheel. What it knows of ops comes from ``_C._describe_ops()``; what is no op is in the template
``extension.pyi.txt``. ``stub``, ``page``, ``families``, ``part``, ``picture``, ``chart`` and
``ecosystem`` make texts, ``__main__`` writes or compares them.
"""
