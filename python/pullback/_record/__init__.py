"""Records of runs: `recorder.py` writes them, `compare.py` says where two of them part."""
