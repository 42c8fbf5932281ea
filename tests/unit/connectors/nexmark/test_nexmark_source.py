from __future__ import annotations

import hashlib
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.nexmark.source import BASE_TIME, STREAMS, nexmark
from evenflow.connectors.share import Share
from evenflow.engine.errors import FlowError

MANY = 500_000
"""The number of events, large enough that shares of 10,000 people or more are within a hundredth of their probability."""

every_stream = pytest.mark.parametrize("stream", STREAMS)


def rows(stream, parallelism=1, max_rows=100_000, **options):
    """Read all rows, those of the first worker first."""
    source = nexmark(stream, rows_per_batch=100_000, **options)
    batches = []
    for index in range(parallelism):
        reader = source.reader(index, parallelism)
        while not reader.finished:
            batches.append(reader.poll(max_rows).rows)
    return pa.Table.from_batches(batches)


@pytest.fixture(scope="module")
def many():
    return {stream: rows(stream, events=MANY) for stream in STREAMS}


def numbers(column):
    return column.combine_chunks().to_numpy(zero_copy_only=False)


def milliseconds(column):
    return column.cast(pa.int64()).to_numpy()


def newest(many, stream, at):
    """Return the newest id of a stream before each event `at`."""
    ids, seq = numbers(many[stream]["id"]), numbers(many[stream]["seq"])
    return ids[np.searchsorted(seq, at) - 1]


def share(mask):
    return np.asarray(mask).mean()


# Rows must not change: existing files and published results depend on them.
@pytest.mark.parametrize(
    ("stream", "digest"),
    [("person", "5bf7a834e06a9a9b"), ("auction", "c21b5ab7fea10697"), ("bid", "6ff8d48f0880287d")],
)
def test_the_first_hundred_rows_are_those_of_every_earlier_version(stream, digest):
    first = rows(stream, events=5_000).slice(0, 100).to_pylist()
    assert hashlib.sha256(json.dumps(first, default=str).encode()).hexdigest()[:16] == digest


@pytest.mark.few(1)
@every_stream
@given(
    parallelism=st.integers(1, 4), max_rows=st.integers(1, 200), group=st.sampled_from([1, 3, 50, 120]), events=st.integers(100, 600),
    seed=st.integers(0, 3),
)  # fmt: skip
def test_the_rows_depend_neither_on_the_workers_nor_on_the_batches(stream, parallelism, max_rows, group, events, seed):
    options = {"events": events, "out_of_order_group_size": group, "seed": seed}
    parts = rows(stream, parallelism, max_rows, **options)
    assert parts.sort_by("seq").combine_chunks().equals(rows(stream, **options).sort_by("seq").combine_chunks())


@every_stream
def test_disorder_changes_the_order_and_nothing_else(stream):
    disordered = rows(stream, events=5_000, out_of_order_group_size=1_000)
    ordered = rows(stream, events=5_000)
    assert not disordered.equals(ordered)
    assert disordered.sort_by("seq").equals(ordered)


@every_stream
def test_another_seed_gives_other_rows(stream):
    first, second = (rows(stream, events=5_000, seed=seed) for seed in (1, 2))
    same = [name for name in first.column_names if first[name].equals(second[name])]
    assert same == [name for name in ("id", "dateTime", "seq") if name in first.column_names]


def test_one_event_in_fifty_is_a_person_three_are_auctions_and_the_others_bids():
    assert [rows(stream, events=5_000).num_rows for stream in STREAMS] == [100, 300, 4_600]


def test_ids_count_from_1000(many):
    for stream in ("person", "auction"):
        assert np.array_equal(numbers(many[stream]["id"]), 1000 + np.arange(many[stream].num_rows))


def test_times_pass_at_the_event_rate_and_rows_have_them_as_their_event_times():
    batch = nexmark("bid", events=1_000, event_rate=2_000).reader(0, 1).poll(2_000)
    assert batch.rows.schema.field("dateTime").type == pa.timestamp("ms", "UTC")
    times = milliseconds(batch.rows["dateTime"])
    assert np.array_equal(times, BASE_TIME + batch.rows["seq"].to_numpy() // 2)
    assert np.array_equal(batch.times, times * 1000)


@pytest.mark.parametrize(("options", "seconds"), [({}, 5), ({"rate": 1_000}, 50), ({"rate": 1_000, "event_rate": 500}, 100)])
def test_event_time_passes_at_the_rate_unless_it_is_said_to_pass_otherwise(options, seconds):
    after_fifty_thousand = Share.of(0, 1).since(1_000).encode()
    assert nexmark("person", **options).earliest(after_fifty_thousand) == BASE_TIME * 1_000 + seconds * 10**6


def test_disordered_rows_are_late_by_less_than_their_group():
    table = rows("bid", events=20_000, event_rate=1_000, out_of_order_group_size=500)
    times = milliseconds(table["dateTime"])
    behind = np.maximum.accumulate(times) - times
    assert 250 < behind.max() < 500


def test_half_of_the_bids_go_to_a_hot_auction(many):
    bids = many["bid"]
    last = newest(many, "auction", numbers(bids["seq"]))
    auction = numbers(bids["auction"])
    hot = auction == (last - 1000) // 100 * 100 + 1000
    assert 0.49 < share(hot) < 0.52
    # The others: the newest hundred, that before them, and ten future ones.
    distance = last[~hot] - auction[~hot]
    late = numbers(bids["seq"])[~hot] > 5_000
    assert set(distance[late].tolist()) == set(range(-10, 101))


def test_three_of_four_bids_are_from_a_hot_bidder_and_the_others_from_the_newest_people(many):
    bids = many["bid"]
    last = newest(many, "person", numbers(bids["seq"]))
    bidder = numbers(bids["bidder"])
    hot = bidder == (last - 1000) // 100 * 100 + 1001
    assert 0.74 < share(hot) < 0.76
    settled = numbers(bids["seq"])[~hot] > 60_000
    distance = (last - bidder)[~hot][settled]
    assert (distance.min(), distance.max()) == (-10, 999)
    assert bidder.max() <= numbers(many["person"]["id"]).max() + 10


def test_three_of_four_auctions_are_from_a_hot_seller(many):
    auctions = many["auction"]
    last = newest(many, "person", numbers(auctions["seq"]))
    seller = numbers(auctions["seller"])
    assert 0.74 < share(seller == (last - 1000) // 100 * 100 + 1000) < 0.76
    assert (last - seller).min() == -10


@pytest.mark.parametrize(
    ("stream", "column", "ratio", "hot"), [("bid", "auction", "hot_auction_ratio", 0.9), ("auction", "seller", "hot_seller_ratio", 0.9)]
)
def test_a_larger_ratio_makes_the_hot_hotter(stream, column, ratio, hot):
    given = numbers(rows(stream, events=100_000, **{ratio: 10})[column])
    assert hot - 0.02 < share(np.isin(given, np.arange(1000, given.max() + 1, 100))) < hot + 0.02


def test_each_two_powers_of_ten_contain_a_third_of_the_prices(many):
    price = numbers(many["bid"]["price"])
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    for low, high in ((100, 10_000), (10_000, 1_000_000), (1_000_000, 100_000_000)):
        assert 0.325 < share((low <= price) & (price < high)) < 0.342


def test_reserves_are_above_the_initial_bid_and_categories_are_five(many):
    auctions = many["auction"]
    assert pc.min(pc.subtract(auctions["reserve"], auctions["initialBid"])).as_py() >= 100
    assert sorted(pc.unique(auctions["category"]).to_pylist()) == [10, 11, 12, 13, 14]


def test_the_mean_length_of_an_auction_is_the_time_of_a_hundred_auctions(many):
    length = milliseconds(many["auction"]["expires"]) - milliseconds(many["auction"]["dateTime"])
    horizon = 1_666 / 10
    assert length.min() >= 1
    assert length.max() <= 2 * horizon + 1
    assert 0.97 * horizon < length.mean() < 1.03 * horizon


def test_channels_are_half_hot_and_nine_of_ten_of_the_others_have_a_parameter(many):
    channel, url = many["bid"]["channel"], many["bid"]["url"]
    hot = numbers(pc.is_in(channel, pa.array(["Google", "Facebook", "Baidu", "Apple"])))
    assert 0.49 < share(hot) < 0.51
    with_id = numbers(pc.match_substring(url, "&channel_id="))
    assert not with_id[hot].any()
    assert 0.89 < share(with_id[~hot]) < 0.91
    pattern = r"^https://www\.nexmark\.com/[a-z_]{3,4}/[a-z_]{3,4}/[a-z_]{3,4}/item\.htm\?query=1(&channel_id=-?\d+)?$"
    assert numbers(pc.match_substring_regex(url, pattern)).all()
    assert pc.count_distinct(pc.filter(url, pa.array(hot))).as_py() <= 4


def test_the_parameter_of_a_channel_is_its_number_with_its_bits_reversed(many):
    table = many["bid"].filter(pc.match_substring(many["bid"]["url"], "channel_id"))
    some = dict(zip(table["channel"].to_pylist(), table["url"].to_pylist(), strict=True))
    for channel, url in list(some.items())[:200]:
        number = int(f"{int(channel.removeprefix('channel-')):032b}"[::-1], 2)
        assert url.endswith(f"&channel_id={number if number < 2**31 else 2**32 - number if number > 2**31 else -(2**31)}")


def test_people_have_names_mail_cards_cities_and_states(many):
    people = many["person"]
    for column, pattern in {
        "name": r"^[A-Z][a-z]+ [A-Z][a-z]+$",
        "emailAddress": r"^[a-z ]{0,6}@[a-z ]{0,4}\.com$",
        "creditCard": r"^\d{4} \d{4} \d{4} \d{4}$",
        "state": "^(AZ|CA|ID|OR|WA|WY)$",
    }.items():
        assert numbers(pc.match_substring_regex(people[column], pattern)).all(), column
    assert [pc.count_distinct(people[column]).as_py() for column in ("name", "city", "state")] == [99, 10, 6]
    assert pc.count_distinct(people["creditCard"]).as_py() == people.num_rows


def test_one_character_in_thirteen_of_a_description_is_a_space(many):
    inner = "".join(text[1:-1] for text in many["auction"]["description"].to_pylist()[:2_000])
    assert 0.07 < inner.count(" ") / len(inner) < 0.084


@pytest.mark.parametrize(("stream", "average", "numeric"), [("person", 200, 8), ("auction", 500, 48), ("bid", 100, 32)])
def test_rows_are_as_large_as_the_original_ones_on_average(many, stream, average, numeric):
    table = many[stream]
    # The original doesn't count a bid's channel and url.
    texts = [name for name in table.column_names if table.schema.field(name).type == pa.string() and name not in ("channel", "url")]
    size = numeric + sum(numbers(pc.binary_length(table[name])).astype(float) for name in texts)
    assert 0.98 * average < size.mean() < 1.01 * average
    assert 0.8 * average <= size.min() < size.max() <= 1.2 * average


@pytest.mark.parametrize("stream", STREAMS)
def test_no_column_has_commas_quotes_or_nulls(many, stream):
    for name, column in zip(many[stream].column_names, many[stream].columns, strict=True):
        assert column.null_count == 0
        if column.type == pa.string():
            assert not numbers(pc.match_substring_regex(column, '[,"\\n]')).any(), name


def test_paced_streams_pass_at_their_share_of_the_rate():
    now = 0.0
    readers = {stream: nexmark(stream, rate=5_000, clock=lambda: now).reader(0, 1) for stream in STREAMS}
    assert [reader.poll(10_000) for reader in readers.values()] == [None] * 3
    now = 1.0
    assert {stream: reader.poll(10_000).num_rows for stream, reader in readers.items()} == {"person": 100, "auction": 300, "bid": 4_600}
    assert nexmark("bid", rate=5_000).rate == 4_600


def test_the_source_can_be_sent_to_a_worker():
    source = nexmark("bid", events=100)
    assert pickle.loads(pickle.dumps(source)).reader(0, 1).poll(1).num_rows == 1


def test_created_is_a_column_of_its_own():
    assert nexmark("person", events=50, created=True).reader(0, 1).poll(1).rows.schema.names[-2:] == ["seq", "created"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stream": "item"}, "stream 'item' is unknown; there are: person, auction, bid"),
        ({"rate": 0}, "rate is 0; it must be above 0 events per second"),
        ({"event_rate": -1}, "event_rate is -1"),
        ({"events": -1}, "events is -1; it must be a whole number of at least 0"),
        ({"hot_bidder_ratio": 0}, "hot_bidder_ratio is 0"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"out_of_order_group_size": 953}, "no multiple of 953"),
        ({"out_of_order_group_size": 0}, "from 1 to 10,000"),
        ({"base_time": 0.5}, "base_time is 0.5"),
        ({"events": 10**18}, "must be in the years 1 to 9999"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(FlowError, match=message):
        nexmark(**{"stream": "bid", **arguments})
