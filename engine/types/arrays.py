"""Conversions of numpy arrays to other types that change no value.

>>> exactly_as(np.array([1.0, 2.0]), np.dtype(np.int64)), exactly_as(np.array([1.5]), np.dtype(np.int64))
(array([1, 2]), None)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def exactly_as(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Return the values as `dtype`, None if one would change.

    Floats may be rounded to floats of fewer bits, but not to infinity.
    """
    try:
        with np.errstate(all="ignore"):
            converted = values.astype(dtype)
            if values.dtype.kind == "f" and dtype.kind == "f":
                same = np.isfinite(converted) | ~np.isfinite(values)
            else:
                back = converted.astype(values.dtype)
                same = ((back == values) & (converted == values)) | (_is_nan(back) & _is_nan(values))
    except (TypeError, ValueError, OverflowError):
        return None
    return converted if np.all(same) else None


def _is_nan(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    nothing: npt.NDArray[np.bool_] = np.zeros(values.shape, np.bool_)
    if values.dtype.kind in "mM":
        nothing = np.isnat(values)
    elif values.dtype.kind in "fc":
        nothing = np.isnan(values)
    return nothing
