"""Counter-based random numbers: those of a row depend on the seed, a purpose and the row's number, so a reader can begin anywhere.

>>> numbers = np.arange(4)
>>> bool((random_bits(7, 1, numbers)[2:] == random_bits(7, 1, numbers[2:])).all())
True
>>> bool((below(random_bits(7, 1, numbers), 3) < 3).all())
True
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]


def random_bits(seed: int, purpose: int, number: npt.NDArray[np.int64]) -> Bits:
    """Return 64 random bits per number, with its shape: SplitMix64's mixing function (Steele, Lea, Flood, OOPSLA 2014) over a
    counter.
    """
    z = number.astype(np.uint64)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z += _beginning(seed, purpose)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def unit(bits: Bits) -> npt.NDArray[np.float64]:
    """Convert the upper 53 bits to uniform numbers in [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(bits: Bits, bound: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    """Convert the upper 32 bits to whole numbers from 0 to `bound` - 1; `bound` is at most 2**31, a number or one per row.

    Multiply and shift (Lemire, Fast Random Integer Generation in an Interval, 2019) without rejection: the bias is below `bound`
    / 2**32.
    """
    scaled = (bits >> np.uint64(32)) * np.asarray(bound).astype(np.uint64)
    scaled >>= np.uint64(32)
    return scaled.view(np.int64)


def lower(bits: Bits) -> Bits:
    """Return the lower 32 bits as upper ones: a second, independent draw."""
    return bits << np.uint64(32)


@lru_cache(maxsize=64)
def _beginning(seed: int, purpose: int) -> np.uint64:
    """Return the start of an independent sequence for each purpose."""
    return np.uint64(np.random.SeedSequence((seed, purpose)).generate_state(1, np.uint64)[0])
