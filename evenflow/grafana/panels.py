"""Panels of the dashboards as data: a title, what it shows, its queries in PromQL, and the unit of its values.

Invariant: a query asks only for metrics and labels that a job has; `tests/unit/evenflow/grafana` compares them with a real scrape.
"""

from __future__ import annotations

from dataclasses import dataclass

JOB = 'job=~"$job"'
"""What every query selects; `$job` is chosen at the top of the dashboard."""

RATE = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Query:
    """`legend`: how a series is called, with labels as `{{operator}}`."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """`unit` is Grafana's name of it. `about`: what a reader should know."""

    title: str
    about: str
    unit: str
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


def one(title: str, about: str, unit: str, expression: str, legend: str) -> Panel:
    """A panel with one query."""
    return Panel(title, about, unit, (Query(expression, legend),))


def quantiles(title: str, about: str, metric: str, by: str = "") -> Panel:
    """p50 and p99 of a histogram, by one of its labels besides."""
    labels, legend = (f"le, job, {by}", f"{{{{{by}}}}} ") if by else ("le, job", "")
    expression = f"histogram_quantile({{}}, sum by ({labels}) (rate(evenflow_{metric}_bucket{{{{{JOB}}}}}{RATE})))"
    return Panel(title, about, "s", tuple(Query(expression.format(part), f"{legend}p{name}") for part, name in ((0.5, 50), (0.99, 99))))


JOB_ROWS = (
    Row(
        "Stream",
        (
            one(
                "Records in",
                "Records that each operator takes.",
                "cps",
                f"sum by (job, operator) (evenflow_rows_in_per_second{{{JOB}}})",
                "{{operator}}",
            ),
            one(
                "Records out",
                "Records that each operator sends.",
                "cps",
                f"sum by (job, operator) (evenflow_rows_out_per_second{{{JOB}}})",
                "{{operator}}",
            ),
            quantiles("Latency", "From source to where the stream ends, of latency marks.", "record_latency_seconds", "operator"),
            one(
                "Lag of event time",
                "How far each worker's watermark is behind the newest of its job.",
                "s",
                f"max by (job) (evenflow_watermark_seconds{{{JOB}}}) "
                f"- on (job) group_right min by (job, operator) (evenflow_watermark_seconds{{{JOB}}})",
                "{{operator}}",
            ),
            one(
                "Unread records",
                "Of sources that know, such as Kafka.",
                "short",
                f"sum by (job, operator) (evenflow_split_lag{{{JOB}}})",
                "{{operator}}",
            ),
            one(
                "Records left out",
                "Records that functions refused or sources could not decode, dead letters too, and late ones.",
                "cps",
                "sum by (job, operator) "
                f"(rate(evenflow_skipped_records_total{{{JOB}}}{RATE}) + rate(evenflow_late_records_total{{{JOB}}}{RATE}))",
                "{{operator}}",
            ),
        ),
    ),
    Row(
        "Load",
        (
            one(
                "Busy", "The part of its time for which each worker works.", "percentunit", f"evenflow_useful_share{{{JOB}}}", "{{worker}}"
            ),
            Panel(
                "Imbalance and floor",
                "Load of the hottest worker over the mean, and the least that any placement of whole keys can have.",
                "short",
                (
                    Query(f"evenflow_imbalance{{{JOB}}}", "{{operator}}"),
                    Query(f"evenflow_imbalance_floor{{{JOB}}}", "{{operator}} floor"),
                ),
            ),
            one(
                "Waiting for credit",
                "The part of its time for which each worker is held back by those that it sends to.",
                "percentunit",
                f"evenflow_backpressure{{{JOB}}}",
                "{{worker}}",
            ),
            one(
                "Waiting for input",
                "The part of its time for which each worker has nothing to do.",
                "percentunit",
                f"evenflow_input_wait_share{{{JOB}}}",
                "{{worker}}",
            ),
            one("Batches in queues", "Received and not yet processed.", "short", f"evenflow_queued_batches{{{JOB}}}", "{{worker}}"),
            one("State", "Keyed state, as estimated.", "bytes", f"evenflow_state_bytes{{{JOB}}}", "{{worker}}"),
            one("Workers", "By operator.", "short", f"count by (job, operator) (evenflow_useful_share{{{JOB}}})", "{{operator}}"),
        ),
    ),
    Row(
        "Decisions and recovery",
        (
            one(
                "Moves of keys",
                "By operator and by how they ended.",
                "short",
                f"sum by (job, operator, state) (increase(evenflow_migrations_total{{{JOB}}}{RATE}))",
                "{{operator}} {{state}}",
            ),
            quantiles("Duration of moves", "", "migration_seconds", "operator"),
            one(
                "Scalings",
                "By operator and by how they ended.",
                "short",
                f"sum by (job, operator, state) (increase(evenflow_scalings_total{{{JOB}}}{RATE}))",
                "{{operator}} {{state}}",
            ),
            one(
                "Decisions of the scaling policy",
                "And what became of them.",
                "short",
                f"sum by (job, policy, outcome) (increase(evenflow_decisions_total{{{JOB}}}{RATE}))",
                "{{policy}} {{outcome}}",
            ),
            one(
                "Checkpoints",
                "By how they ended.",
                "short",
                f"sum by (job, state) (increase(evenflow_checkpoints_total{{{JOB}}}{RATE}))",
                "{{state}}",
            ),
            quantiles("Duration of checkpoints", "", "checkpoint_seconds"),
            one(
                "Age of the newest checkpoint",
                "A job that fails now goes back by as much.",
                "s",
                f"max by (job) (evenflow_checkpoint_age_seconds{{{JOB}}})",
                "{{job}}",
            ),
            one(
                "Restarts",
                "How often the job went back to its last checkpoint.",
                "short",
                f"sum by (job) (increase(evenflow_restarts_total{{{JOB}}}{RATE}))",
                "{{job}}",
            ),
            quantiles("Duration of recoveries", "From a failure to all workers running again.", "recovery_seconds"),
        ),
    ),
)

CLUSTER_ROWS = (
    Row(
        "All jobs",
        (
            one("Records taken by sources and operators", "", "cps", f"sum by (job) (evenflow_rows_in_per_second{{{JOB}}})", "{{job}}"),
            one(
                "p99 of latency",
                "",
                "s",
                f"histogram_quantile(0.99, sum by (le, job) (rate(evenflow_record_latency_seconds_bucket{{{JOB}}}{RATE})))",
                "{{job}}",
            ),
            one(
                "Worst imbalance over its floor",
                "1 is as even as whole keys can be.",
                "short",
                f"max by (job) (evenflow_imbalance{{{JOB}}} / evenflow_imbalance_floor{{{JOB}}})",
                "{{job}}",
            ),
            one("Busiest worker", "", "percentunit", f"max by (job) (evenflow_useful_share{{{JOB}}})", "{{job}}"),
            one("Workers", "", "short", f"count by (job) (evenflow_useful_share{{{JOB}}})", "{{job}}"),
            one("State", "", "bytes", f"sum by (job) (evenflow_state_bytes{{{JOB}}})", "{{job}}"),
            one("Restarts in an hour", "", "short", f"sum by (job) (increase(evenflow_restarts_total{{{JOB}}}[1h]))", "{{job}}"),
            one(
                "Failed checkpoints in an hour",
                "",
                "short",
                f'sum by (job) (increase(evenflow_checkpoints_total{{{JOB}, state="failed"}}[1h]))',
                "{{job}}",
            ),
            one(
                "Refused messages",
                "Malformed ones, and strangers: more than none is worth a look.",
                "short",
                f"sum by (job) (evenflow_refused_messages_total{{{JOB}}})",
                "{{job}}",
            ),
        ),
    ),
)
