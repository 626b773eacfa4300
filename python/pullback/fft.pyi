# Written by `cargo xtask gen` from the op registry; edits are lost.

from ._C._fft import fft_fft as fft
from ._C._fft import fft_fft2 as fft2
from ._C._fft import fft_fftfreq as fftfreq
from ._C._fft import fft_fftn as fftn
from ._C._fft import fft_fftshift as fftshift
from ._C._fft import fft_hfft as hfft
from ._C._fft import fft_hfft2 as hfft2
from ._C._fft import fft_hfftn as hfftn
from ._C._fft import fft_ifft as ifft
from ._C._fft import fft_ifft2 as ifft2
from ._C._fft import fft_ifftn as ifftn
from ._C._fft import fft_ifftshift as ifftshift
from ._C._fft import fft_ihfft as ihfft
from ._C._fft import fft_ihfft2 as ihfft2
from ._C._fft import fft_ihfftn as ihfftn
from ._C._fft import fft_irfft as irfft
from ._C._fft import fft_irfft2 as irfft2
from ._C._fft import fft_irfftn as irfftn
from ._C._fft import fft_rfft as rfft
from ._C._fft import fft_rfft2 as rfft2
from ._C._fft import fft_rfftfreq as rfftfreq
from ._C._fft import fft_rfftn as rfftn
from ._tensor import Tensor as Tensor

__all__ = [
    "Tensor",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
