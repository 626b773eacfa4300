"""Writes `digits.bin` from scikit-learn's digits; run it only to make the file again.

The file is 1797 x 64 pixels, one byte each with values 0 to 16, image after image and row by
row, followed by 1797 labels, one byte each with values 0 to 9: 116,805 bytes in all.
"""

from pathlib import Path

from sklearn.datasets import load_digits

data = load_digits()
pixels = data.images.astype("uint8").tobytes()
labels = data.target.astype("uint8").tobytes()
Path(__file__).with_name("digits.bin").write_bytes(pixels + labels)
