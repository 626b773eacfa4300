"""The suite of `cargo xtask bench`: the same programs on pullback and on PyTorch.

A case is one program with a name, whose first letter is its group: A what a call costs
(`overhead.py`), B arrays larger than the caches (`bandwidth.py`), C arithmetic (`compute.py`),
D whole programs (`programs.py`), E importing and installing (`process.py`). `catalogue.py` lists
them all. `measure.py` times them with one library; `compare.py` puts two libraries' times side by
side; `record.py` keeps the ratios of a kind of processor and says what became slower. No absolute
time is a result here. Start at `case.py`.
"""
