"""The older name of downloads of weights: see ``torch.hub``."""

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm as tqdm

__all__ = ["load_url"]
