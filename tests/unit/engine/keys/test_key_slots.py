"""Slots of keys: for all types and all changes of types, every key keeps its slot, and is returned unchanged."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.keys import encoding
from evenflow.engine.keys import words as texts
from evenflow.engine.keys.encoding import KeyTypes, encode_keys, key_hashes, key_values
from evenflow.engine.keys.slots import KeySlots
from evenflow.engine.keys.words import LONGEST
from evenflow.state import hashing, word_cells, words
from evenflow.state.key_index import DictIndex
from evenflow.state.word_index import WordIndex

SMALL = st.integers(-5, 5)
TEXTS = st.one_of(st.sampled_from(["", "a", "a\0", "\x01", "\x02", "seven b", "eight by", "nine byte"]), st.text(max_size=40))
COLUMNS = st.one_of(
    st.lists(SMALL).map(lambda keys: pa.array(keys, pa.int64())),
    st.lists(SMALL).map(lambda keys: pa.array(keys, pa.int8())),
    st.lists(st.integers(0, 2**64 - 1)).map(lambda keys: pa.array(keys, pa.uint64())),
    st.lists(st.one_of(SMALL, st.none())).map(lambda keys: pa.array(keys, pa.int64())),
    st.lists(st.floats(-3, 3, width=16)).map(lambda keys: pa.array(keys, pa.float64())),
    st.lists(SMALL).map(lambda keys: pa.array([*map(decimal.Decimal, keys)], pa.decimal128(20, 2))),
)
"""Numbers of several types; floats and decimals are never in one column."""
VALUES = {
    pa.int64(): st.one_of(SMALL, st.integers(-(2**63), 2**63 - 1)),
    pa.uint64(): st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)),
    pa.int16(): SMALL,
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, float("inf")]),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): st.binary(max_size=20),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ms", "UTC"): st.integers(-5, 5).map(lambda n: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=n)),
    pa.time64("us"): st.times(),
    pa.duration("s"): st.integers(-5, 5).map(lambda n: dt.timedelta(seconds=n)),
    pa.decimal128(5, 2): st.decimals(-9, 9, places=2),
}
"""Values of types of keys; decimals have no words."""


def values(columns):
    """Return keys as Python values."""
    return [tuple(key) for key in zip(*(column.to_pylist() for column in columns), strict=True)]


@st.composite
def steps(draw):
    """Changes of keys of up to three columns: keys that are looked for, and then some that are removed."""
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    key = st.tuples(*(st.one_of(VALUES[kind], st.none()) if draw(st.booleans()) else VALUES[kind] for kind in kinds))
    pool = draw(st.lists(key, min_size=1, max_size=12))
    some = st.lists(st.sampled_from(pool), max_size=20)

    def columns(keys):
        return [pa.array([key[i] for key in keys], kind) for i, kind in enumerate(kinds)]

    return [(columns(draw(some)), columns(list(dict.fromkeys(draw(some))))) for _ in range(draw(st.integers(1, 6)))]


@given(steps())
def test_slots_of_several_columns_agree_with_a_dict_of_values(changes):
    slots, model = KeySlots("count"), {}
    for columns, gone in changes:
        where = slots.of(columns)
        for key, slot in zip(values(columns), where.tolist(), strict=True):
            assert model.setdefault(key, slot) == slot
        assert len(set(model.values())) == len(model), "no two keys share a slot"
        removed = slots.known(gone)
        assert sorted(removed.tolist()) == sorted(model[key] for key in values(gone) if key in model)
        slots.remove(removed)
        model = {key: slot for key, slot in model.items() if key not in set(values(gone))}
        there = slots.keys(slots.everything())
        assert dict(zip(values(there), slots.everything().tolist(), strict=True)) == model
        assert [column.type for column in there] == [column.type for column in columns]


def told(batches, few):
    """Return the slots found for batches of key columns, one after another, if up to `few` keys count as a few."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((words, "FEW"), (encoding, "FEW"), (texts, "FEW"), (hashing, "FEW"), (word_cells, "_FEW")):
            patch.setattr(module, name, few)
        slots, found = KeySlots("count"), []
        for columns in batches:
            names = tuple("abc"[: len(columns)])
            keys = encode_keys(pa.record_batch(columns, names=list(names)), names, "count")
            where, fresh = slots.of(keys.columns).tolist(), slots.fresh.tolist()
            there = [column.to_pylist() for column in slots.keys(slots.everything())]
            hashes = key_hashes(keys.columns, "count").tolist()
            known = slots.known(columns).tolist()
            found.append((keys.codes.tolist(), keys.values(), keys.count, hashes, where, fresh, known, there))
        return found


@given(steps())
def test_a_few_keys_get_the_codes_hashes_and_slots_that_many_would(changes):
    batches = [columns for change in changes for columns in change]
    many = told(batches, few=0)
    assert told(batches, few=2) == many
    assert told(batches, few=1_000) == many


@pytest.mark.parametrize("span", [8, 500, 2**63], ids=["close", "apart", "everywhere"])
def test_small_and_large_batches_in_turn_get_the_slots_of_large_ones(span):
    random = np.random.default_rng(span % 7)

    def columns(rows):
        numbers = pa.array(random.integers(-min(span, 2**63 - 1), span - 1, rows, endpoint=True))
        named = [f"{'x' * (number % 40)}{number}" if number % 9 else None for number in numbers.to_pylist()]
        return [numbers, pa.array(named, pa.string())]

    batches = [columns(rows) for rows in (0, 1, 700, 3, 130, 128, 129, 50, 2_000, 5, 24, 25, 1)]
    for chosen in (slice(0, 1), slice(1, 2), slice(0, 2)):
        picked = [batch[chosen] for batch in batches]
        assert told(picked, words.FEW) == told(picked, 0)


@pytest.mark.parametrize("few", [0, 1_000])
def test_zeros_are_one_key_and_so_are_nans(few):
    (codes, _, count, *_), *_ = told([[pa.array([0.0, -0.0, None, 1.5, -0.0])]], few)
    assert (codes, count) == ([0, 0, 1, 2, 0], 3)
    (codes, _, count, *_), *_ = told([[pa.array([float("nan"), 1.0, -float("nan")])]], few)
    assert (codes, count) == ([0, 1, 0], 2)


@given(st.lists(st.tuples(COLUMNS, st.lists(st.one_of(SMALL, st.none(), st.sampled_from("abc")), unique=True)), max_size=8))
def test_slots_agree_with_a_dict_of_numbers_of_any_type(changes):
    slots, model = KeySlots("count"), {}
    for column, gone in changes:
        try:
            slots.types.with_types([column])
        except RecordError:
            continue
        where = slots.of([column])
        for key, slot in zip(column.to_pylist(), where.tolist(), strict=True):
            assert model.setdefault(key, slot) == slot
        for key in gone:
            removed = slots.known([pa.array([key])])
            assert removed.tolist() == ([model[key]] if key in model else [])
            slots.remove(removed)
        model = {key: slot for key, slot in model.items() if key not in gone}
        assert slots.everything().tolist() == sorted(model.values())


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_integers_come_back_in_their_type(kind):
    slots = KeySlots("count")
    slots.of([pa.array([5, 6, 5], kind)])
    assert isinstance(slots.index, WordIndex)
    assert slots.keys(np.array([1, 0])) == [pa.array([6, 5], kind)]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([pa.array([1.5])], id="floats"),
        pytest.param([pa.array([1], pa.int32())], id="another type"),
        pytest.param([pa.array([1], pa.uint64())], id="too large"),
    ],
)
def test_the_first_key_of_another_type_ends_it_for_good(columns):
    slots = KeySlots("count")
    first = slots.of([pa.array([5, 1])]).tolist()
    slots.of(columns)
    assert isinstance(slots.index, DictIndex)
    assert slots.of([pa.array([5, 1])]).tolist() == first


def test_a_key_of_a_type_that_goes_with_no_number_is_refused():
    slots = KeySlots("count", ["user"])
    slots.of([pa.array([5, 1])])
    with pytest.raises(RecordError, match="operator `count`: the key column `user` has values of the types int64 and string: give it one"):
        slots.of([pa.array(["a"])])


def test_keys_come_back_in_the_type_that_holds_all():
    slots = KeySlots("count", ["user"])
    assert slots.of([pa.array([5, 2**53])]).tolist() == [0, 1]
    assert slots.of([pa.array([5.0, 0.5])]).tolist() == [0, 2]
    assert slots.keys(np.array([0, 1, 2])) == [pa.array([5.0, 2.0**53, 0.5])]
    slots.of([pa.array([2**53 + 1])])
    with pytest.raises(RecordError, match="the key column `user` is double, which can't hold all of its keys"):
        slots.keys(np.array([3]))


@pytest.mark.parametrize("later", [pa.array([None], pa.int64()), pa.nulls(1)], ids=["typed", "untyped"])
def test_a_null_is_a_key_like_the_others(later):
    slots = KeySlots("count")
    assert slots.of([pa.array([0, 1])]).tolist() == [0, 1]
    assert slots.of([later]).tolist() == [2]
    assert slots.of([pa.array([None, 0, 1])]).tolist() == [2, 0, 1]
    assert isinstance(slots.index, WordIndex)


def test_a_long_text_ends_it_and_all_keys_keep_their_slots():
    slots = KeySlots("count")
    texts = ["", "x" * LONGEST, None, "b" * 8]
    assert slots.of([pa.array(texts)]).tolist() == [0, 1, 2, 3]
    assert isinstance(slots.index, WordIndex)
    assert slots.of([pa.array(["x" * (LONGEST + 1), *texts])]).tolist() == [4, 0, 1, 2, 3]
    assert isinstance(slots.index, DictIndex)


@pytest.mark.parametrize("text", ["", "x" * (LONGEST + 1)], ids=["words", "values"])
def test_nan_has_one_slot(text):
    slots, texts = KeySlots("count"), pa.array([text] * 3)
    assert slots.of([pa.array([1.0, float("nan"), -float("nan")]), texts]).tolist() == [0, 1, 1]
    assert slots.of([pa.array([float("nan"), 1.0, 2.0]), texts]).tolist() == [1, 0, 2]
    slots.remove(np.array([1]))
    assert slots.known([pa.array([float("nan")]), texts[:1]]).tolist() == []


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns"), pa.duration("s")], ids=str
)
@pytest.mark.parametrize("text", ["", "x" * (LONGEST + 1)], ids=["words", "values"])
def test_times_that_python_has_no_value_for_come_back(kind, text):
    slots, texts = KeySlots("count"), pa.array([text] * 4)
    counts = [1, 86_399_999_999_000, None, 2**62 if kind == pa.duration("s") else 1_001]
    assert slots.of([pa.array(counts, pa.int64()).view(kind), texts]).tolist() == [0, 1, 2, 3]
    assert slots.of([pa.array(counts[::-1], pa.int64()).view(kind), texts]).tolist() == [3, 2, 1, 0]
    assert slots.keys(np.arange(4))[0].view(pa.int64()).to_pylist() == counts


@pytest.mark.parametrize("text", ["", "x" * (LONGEST + 1)], ids=["words", "values"])
@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        (pa.timestamp("us"), pa.timestamp("ns"), [7, None]),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin"), [7_000, None]),
        (pa.duration("ns"), pa.duration("us"), [7_000, None]),
        (pa.timestamp("s"), pa.timestamp("ms"), [2**50, None]),
        (pa.duration("ms"), pa.duration("s"), [2**50 * 1_000, None]),
        (pa.time64("us"), pa.time64("ns"), [7, None]),
    ],
    ids=str,
)
def test_times_in_other_units_have_one_slot_and_come_back_in_the_finer_unit(one, other, counts, text):
    slots, texts = KeySlots("count"), pa.array([text] * 2)
    first = pa.array(counts, pa.int64()).view(one)
    assert slots.of([first, texts]).tolist() == slots.of([first.cast(other), texts]).tolist() == slots.of([first, texts]).tolist() == [0, 1]
    finer = max(one, other, key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
    (back, _) = slots.keys(np.arange(2))
    assert back.type.unit == finer.unit
    assert back.equals(first.cast(back.type))


def test_columns_that_begin_in_the_middle_of_an_array():
    texts = pa.array(["zero", None, "two", "three"])
    slots = KeySlots("count")
    assert slots.of([texts.slice(1), pa.array([True, False, None, True]).slice(1)]).tolist() == [0, 1, 2]
    assert values(slots.keys(np.arange(3))) == [(None, False), ("two", None), ("three", True)]
    assert slots.known([texts.slice(3), pa.array([True])]).tolist() == [2]


def test_keys_that_were_not_added_have_no_slots():
    assert KeySlots("count").known([pa.array([1]), pa.array(["a"])]).tolist() == []


def test_keys_that_come_and_go_are_found_in_a_small_table():
    index, slots = WordIndex(1), np.arange(1_000)
    for turn in range(50):
        keys = (np.arange(1_000, dtype=np.uint64) * np.uint64(7) + np.uint64(turn * 100_000))[np.newaxis]
        index.add(keys, slots, slots)
        assert index.find(keys).tolist() == slots.tolist()
        index.remove(slots)
        assert set(index.find(keys).tolist()) == {-1}
    assert index.nbytes <= 8 * 1_000 + 4 * 8_192


def test_an_endless_stream_of_new_keys_takes_the_memory_of_those_that_are_there():
    slots = KeySlots("count")
    for turn in range(100):
        first = turn * 500
        slots.of([pa.array(range(first, first + 1_000)), pa.array([f"key-{n}" for n in range(first, first + 1_000)])])
        slots.remove(slots.known([pa.array(range(first, first + 500)), pa.array([f"key-{n}" for n in range(first, first + 500)])]))
        assert len(slots) == 500
    assert slots.capacity <= 2_048
    assert slots.nbytes <= 2_048 * (9 + 4 * 8) + 4 * 16_384


def test_key_values_are_what_keys_were():
    types = KeyTypes("count")
    columns = [pa.array([1, 2]), pa.array(["a", None])]
    types.learn(columns)
    assert types.columns(key_values(columns)) == columns


@pytest.mark.parametrize(
    ("kept", "asked", "expected"),
    [
        pytest.param(pa.array([7, 8]), pa.array([8, 9, None], pa.int32()), [1, -1, -1], id="int64 and int32"),
        pytest.param(pa.array([7, 8], pa.uint8()), pa.array([2**40, 8]), [-1, 1], id="uint8 and int64"),
        pytest.param(pa.array(["a", "b"]), pa.array(["b", "c"], pa.large_string()), [1, -1], id="string and large_string"),
        pytest.param(pa.array(["a", "b"]), pa.array(["b", "c"]).dictionary_encode(), [1, -1], id="string and dictionary"),
        pytest.param(pa.array([0.0, float("nan")]), pa.array([float("nan"), -0.0], pa.float32()), [1, 0], id="double and float"),
    ],
)
def test_keys_of_a_comparable_type_are_found(kept, asked, expected):
    slots = KeySlots("count")
    slots.of([kept])
    slots.learn([asked])
    assert slots.places([asked]).tolist() == expected
    assert slots.places([kept]).tolist() == [0, 1]
