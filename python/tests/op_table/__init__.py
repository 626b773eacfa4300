"""How to call every op: one table for the recorded values, the coverage command and the
benchmark.

`ops.tsv` says which public names there are and what each must support; `row.py` reads it. The
modules of FAMILIES say how to call them, as data: a call names inputs (`call.py`), which are
built the same in every library. `observe.py` runs a call and says what came of it, `record.py`
keeps what PyTorch does, `difference.py` compares, `coverage.py` prints which rows are complete.
Nothing here imports a tensor library: it is handed over as an argument. To add an op, find its
family and add a line.
"""
