from __future__ import annotations

from kafka_broker import kafka_broker

from evenflow.bench.kafka import reading


def test_all_rows_are_read_by_both(monkeypatch):
    monkeypatch.setattr(reading.time, "sleep", lambda seconds: None)  # the reader is polled again at once
    with kafka_broker() as bootstrap:
        said: list[str] = []
        run = reading.run(bootstrap=bootstrap, rows=2_000, repeat=1, say=said.append)

    assert {case.name for case in run.cases} == {"raw/client", "raw/evenflow", "json/client", "json/evenflow"}
    assert [verdict.claim for verdict in run.verdicts] == ["raw, evenflow / client", "json, evenflow / client"]
    assert len(said) == 4
