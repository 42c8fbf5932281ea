"""Random strings as columns: substrings of one long random text, cut out without a loop over rows.

>>> text = RandomText(seed=7, special=" ")
>>> cut = text.cut(np.array([0, 5]), np.array([3, 4]))
>>> cut.type, [len(word) for word in cut.to_pylist()]
(DataType(string), [3, 4])
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..generated.random_bits import Bits, below, lower, random_bits

LENGTH = 1 << 20
"""The number of characters of the text."""

LETTERS = 26
PART = 13
"""One in so many characters is the special one."""

_CHARACTERS = 1_000


class RandomText:
    """A text of random lower-case letters; about one in 13 is the `special` character, if there is one."""

    def __init__(self, seed: int, special: str = "") -> None:
        self._bytes = _text(seed, special)

    def cut(self, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> pa.Array:
        """Return the substrings of `lengths` characters from `starts` on."""
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1], dtype=np.int32)
        places += np.repeat(starts.astype(np.int32) - offsets[:-1], lengths)
        return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(self._bytes[places]))

    def words(self, bits: Bits, shortest: int, longest: int) -> pa.Array:
        """Return a string of `shortest` to `longest` characters for each of `bits`."""
        lengths = shortest + below(bits, longest + 1 - shortest)
        return self.cut(below(lower(bits), LENGTH - longest), lengths)

    def padding(self, bits: Bits, size: npt.NDArray[np.int64], average: int) -> pa.Array:
        """Return strings that pad rows of `size` bytes to `average` bytes, give or take a fifth of the difference."""
        missing = np.maximum(average - size, 0)
        delta = np.rint(missing * 0.2).astype(np.int64)
        lengths = missing - delta + below(bits, 2 * delta)
        return self.cut(below(lower(bits), LENGTH - 2 * average), lengths)


@lru_cache(maxsize=8)
def _text(seed: int, special: str) -> npt.NDArray[np.uint8]:
    bits = random_bits(seed, _CHARACTERS, np.arange(LENGTH))
    text = (ord("a") + below(bits, LETTERS)).astype(np.uint8)
    if special:
        text[below(lower(bits), PART) == 0] = ord(special)
    return text
