"""The part of statsmodels' ARMA processes that tests compare with."""

import numpy as np
from numpy.typing import NDArray

def arma2ma(ar: NDArray[np.float64], ma: NDArray[np.float64], lags: int = ...) -> NDArray[np.float64]: ...
