"""Alert rules fire when they must, and say what to do. promtool evaluates them."""

from __future__ import annotations

import pytest
import yaml
from promtool import RULES, complaints, run

(GROUP,) = yaml.safe_load(RULES.read_text())["groups"]
ALERTS = {rule["alert"]: rule for rule in GROUP["rules"]}


def test_every_rule_waits_and_has_a_severity_a_summary_and_what_to_do():
    for name, rule in ALERTS.items():
        assert name.startswith("Evenflow")
        assert rule["for"]
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert len(rule["annotations"]["description"]) > 80


def of(metric, values, operator="count", **labels):
    """Return a series of the job `shop`; without an operator if that is None."""
    labels = {"job": "shop", **({"operator": operator} if operator else {}), **labels}
    inside = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return {f"{metric}{{{inside}}}": values}


def job(metric, values, **labels):
    return of(metric, values, None, **labels)


def state(**values):
    return {name: series for state, series in values.items() for name, series in job("evenflow_job_state", series, state=state).items()}


def windowed(watermark, rows):
    """Return the series of an operator with a watermark."""
    return {
        **of("evenflow_watermark_seconds", watermark, worker="count-0"),
        **of("evenflow_rows_in_total", rows, worker="count-0"),
    }


CASES = [
    ("EvenflowJobLost", {'up{job="shop", evenflow_job="shop"}': "1x30 0x30"}, True),
    ("EvenflowJobLost", {'up{job="shop", evenflow_job="shop"}': "1x58 0 0"}, False),
    ("EvenflowJobLost", {'up{job="node"}': "0x60"}, False),
    ("EvenflowDoesNotRun", state(running="1x30 0x30", restarting="0x30 1x30", stopping="0x60"), True),
    ("EvenflowDoesNotRun", state(running="1x30 0x30", restarting="0x60", stopping="0x30 1x30"), False),
    ("EvenflowRestartLoop", job("evenflow_restarts_total", "0x40 1+1x20", cause="JobLostError"), True),
    ("EvenflowRestartLoop", job("evenflow_restarts_total", "0x40 2x20", cause="JobLostError"), False),
    ("EvenflowRestartLoop", job("evenflow_restarts_total", "0x40 1+1x20", cause="requested"), False),
    (
        "EvenflowNoCheckpoint",
        {**job("evenflow_checkpoint_age_seconds", "5x30 0+60x30"), **job("evenflow_checkpoint_interval_seconds", "10x60")},
        True,
    ),
    (
        "EvenflowNoCheckpoint",
        {**job("evenflow_checkpoint_age_seconds", "5x30 0+60x30"), **job("evenflow_checkpoint_interval_seconds", "3600x60")},
        False,
    ),
    ("EvenflowNoCheckpoint", job("evenflow_checkpoint_age_seconds", "0+60x60"), False),
    ("EvenflowNoProgress", {**job("evenflow_no_progress_seconds", "0+60x60"), **of("evenflow_source_lag_records", "5x60", "read")}, True),
    ("EvenflowNoProgress", {**job("evenflow_no_progress_seconds", "0+60x60"), **of("evenflow_source_lag_records", "0x60", "read")}, False),
    (
        "EvenflowNoProgress",
        {**job("evenflow_no_progress_seconds", "0+60x60"), **job("evenflow_checkpoint_interval_seconds", "10x60")},
        True,
    ),
    ("EvenflowNoProgress", job("evenflow_no_progress_seconds", "0+60x60"), False),
    (
        "EvenflowLagGrows",
        {**of("evenflow_source_lag_seconds", "0+30x60", "read"), **of("evenflow_source_lag_records", "0+100x60", "read")},
        True,
    ),
    (
        "EvenflowLagGrows",
        {**of("evenflow_source_lag_seconds", "0+30x60", "read"), **of("evenflow_source_lag_records", "90000-100x60", "read")},
        False,
    ),
    (
        "EvenflowWatermarkStands",
        windowed("0+60x30 1800x30", "0+100x60"),
        True,
    ),
    (
        "EvenflowWatermarkStands",
        windowed("0+60x30 1800x30", "0+9x30 270x30"),
        False,
    ),
    (
        "EvenflowWatermarkStands",
        windowed("0+60x60", "0+100x60"),
        False,
    ),
    (
        "EvenflowSkewStays",
        {
            **of("evenflow_imbalance", "1x20 2.5x40"),
            **of("evenflow_imbalance_floor", "1.1x60"),
            **of("evenflow_useful_share", "0.95x60", worker="count-0"),
            **of("evenflow_useful_share", "0.1x60", worker="count-1"),
        },
        True,
    ),
    (
        "EvenflowSkewStays",
        {
            **of("evenflow_imbalance", "1x20 2.5x40"),
            **of("evenflow_imbalance_floor", "2.2x60"),
            **of("evenflow_useful_share", "0.95x60", worker="count-0"),
        },
        False,
    ),
    (
        "EvenflowSkewStays",
        {
            **of("evenflow_imbalance", "1x20 2.5x40"),
            **of("evenflow_imbalance_floor", "1.1x60"),
            **of("evenflow_useful_share", "0.2x60", worker="count-0"),
        },
        False,
    ),
    ("EvenflowDeadLetters", of("evenflow_skipped_records_total", "0x50 3x10", worker="count-0"), True),
    ("EvenflowDeadLetters", of("evenflow_skipped_records_total", "3x60", worker="count-0"), False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("alert", "series", "fires"), CASES, ids=[f"{alert}-{fires}-{at}" for at, (alert, _, fires) in enumerate(CASES)])
def test_an_alert_fires_when_it_must_and_no_other(alert, series, fires, tmp_path):
    assert complaints(tmp_path, series, [(alert, "shop")] if fires else [], at="58m") == ""


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    assert {(alert, fires) for alert, _, fires in CASES} == {(alert, fires) for alert in ALERTS for fires in (True, False)}


@pytest.mark.slow
def test_texts_name_the_job_and_the_value(tmp_path):
    annotations = {
        "summary": "job shop has completed no checkpoint for 25m 0s",
        "description": ALERTS["EvenflowNoCheckpoint"]["annotations"]["description"].replace("{{ $labels.job }}", "shop"),
    }
    series = {**job("evenflow_checkpoint_age_seconds", "0+60x60"), **job("evenflow_checkpoint_interval_seconds", "10x60")}
    given = [{"series": name, "values": values} for name, values in series.items()]
    expected = [{"exp_labels": {"job": "shop", "severity": "critical"}, "exp_annotations": annotations}]
    test = {"alertname": "EvenflowNoCheckpoint", "eval_time": "25m", "exp_alerts": expected}
    assert run(tmp_path, {"interval": "1m", "input_series": given, "alert_rule_test": [test]}) == ""
