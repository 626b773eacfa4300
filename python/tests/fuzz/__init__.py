"""Fuzzers of the library: random inputs for what no list of inputs covers.

A *target* (`target.py`) draws cases, runs one and says what a program that does the same looks
like; a case is JSON, so that it can be kept, made smaller and printed. Cases run in forked children
under limits of memory and time (`child.py`): a crash, a hang or a changed tensor is a *finding*,
which `minimise.py` makes small and `session.py` prints. `corpus/` keeps one file of cases for each
target, which run first each time: what was found and mended, and what reached something new.

Targets: `calls` (ops with valid and broken arguments), `programs` (views, writes and gradients
beside a slow model in NumPy), `parsers` (files, schemas, texts, capsules by mutation), `threads`
(schedules of the engine). Start with `python -m fuzz --help`, or `cargo xtask fuzz`.
"""
