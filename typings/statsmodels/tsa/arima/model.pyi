"""The part of statsmodels' ARIMA that tests and benchmarks compare with."""

import numpy as np
from numpy.typing import NDArray

class PredictionResults:
    predicted_mean: NDArray[np.float64]
    var_pred_mean: NDArray[np.float64]

class ARIMAResults:
    params: NDArray[np.float64]
    llf: float
    aic: float
    def get_forecast(self, steps: int = ...) -> PredictionResults: ...

class ARIMA:
    def __init__(self, endog: NDArray[np.float64], *, order: tuple[int, int, int], trend: str = ...) -> None: ...
    def fit(self, *, start_params: NDArray[np.float64] | None = ...) -> ARIMAResults: ...
    def smooth(self, params: NDArray[np.float64]) -> ARIMAResults: ...
    def loglike(self, params: NDArray[np.float64]) -> float: ...
