from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from evenflow.state.hashing import FEW, NULL_HASH, hash64
from evenflow.state.xxh3 import LONGEST, are_short, digests

KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


@given(st.lists(st.binary(max_size=2 * LONGEST)), st.integers(0, 3))
def test_a_digest_is_that_of_the_package(texts, skipped):
    column = pa.array([b"before"] * skipped + texts, pa.binary()).slice(skipped)
    assert digests(column).tolist() == [xxh3_64_intdigest(text) for text in texts]


@pytest.mark.parametrize("length", range(LONGEST + 2))
def test_each_length_has_its_formula(length):
    texts = [bytes((7 * place + number) % 256 for place in range(length)) for number in range(256)]
    assert digests(pa.array(texts, pa.binary())).tolist() == [xxh3_64_intdigest(text) for text in texts]
    assert are_short(pa.array(texts, pa.binary())) == (length <= LONGEST)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("longest", [LONGEST, LONGEST + 1])
def test_many_texts_have_the_hashes_of_a_few(kind, longest):
    texts = [None if number % 9 == 0 else ("x" * (number % longest + 1) + str(number))[-longest:] for number in range(2 * FEW)]
    column = pa.array(texts, pa.string()).cast(kind)
    alone = [int(hash64(column.slice(place, 1))[0]) for place in range(len(column))]
    assert hash64(column).tolist() == alone
    assert hash64(column.dictionary_encode()).tolist() == alone
    assert hash64(column)[0] == NULL_HASH
