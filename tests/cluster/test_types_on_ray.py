"""Discounts that are 0 at first and floats later, from three workers on Ray, have the right sum."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

import evenflow as ef

ROWS = 30_000


def test_discounts_that_turn_into_floats_and_decimals_that_pass_arrive_as_they_are(tmp_path):
    first = ROWS // 3

    def discounted(row):
        discount = 0 if row["seq"] < first else row["value"] * 0.125
        return row | {"discount": discount, "half": row["seq"] if row["seq"] % 2 else row["seq"] / 2}

    columns = {
        "seq": list(range(ROWS)),
        "value": [i % 977 / 8 for i in range(ROWS)],
        "price": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(10, 2)),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=1_000)
    flow, rows, totals = ef.Dataflow("discounts"), [], []
    sales = flow.read(ef.read_parquet(tmp_path / "in.parquet")).map(discounted)
    sales.write(ef.to_list(rows))
    sales.key_by(lambda row: row["half"] % 5, column="key").aggregate(
        emit="final", n=ef.count(), discount=ef.sum("discount"), price=ef.sum("price")
    ).write(ef.to_list(totals))
    flow.run(parallelism=3, config=ef.JobConfig(network=ef.NetworkConfig(source_rows=500))).wait("120s")
    given = [
        discounted(dict(zip(columns, row, strict=True)))
        for row in zip(*map(list, (columns["seq"], columns["value"], columns["price"].to_pylist())), strict=True)
    ]
    assert sorted(rows, key=lambda row: row["seq"]) == given
    assert sum(row["discount"] for row in totals) == sum(row["discount"] for row in given)
    assert sum(row["price"] for row in totals) == sum(row["price"] for row in given)
    assert {row["key"]: row["n"] for row in totals} == {
        key: [row["half"] % 5 for row in given].count(key) for key in {row["half"] % 5 for row in given}
    }
