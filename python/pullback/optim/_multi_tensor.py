"""The optimisers with `foreach=True`, under the names that PyTorch once gave them."""

from __future__ import annotations

from functools import partial

from .adadelta import Adadelta as _Adadelta
from .adagrad import Adagrad as _Adagrad
from .adam import Adam as _Adam
from .adamax import Adamax as _Adamax
from .adamw import AdamW as _AdamW
from .asgd import ASGD as _ASGD
from .nadam import NAdam as _NAdam
from .radam import RAdam as _RAdam
from .rmsprop import RMSprop as _RMSprop
from .rprop import Rprop as _Rprop
from .sgd import SGD as _SGD

Adam = partial(_Adam, foreach=True)
AdamW = partial(_AdamW, foreach=True)
NAdam = partial(_NAdam, foreach=True)
SGD = partial(_SGD, foreach=True)
RAdam = partial(_RAdam, foreach=True)
RMSprop = partial(_RMSprop, foreach=True)
Rprop = partial(_Rprop, foreach=True)
ASGD = partial(_ASGD, foreach=True)
Adamax = partial(_Adamax, foreach=True)
Adadelta = partial(_Adadelta, foreach=True)
Adagrad = partial(_Adagrad, foreach=True)
