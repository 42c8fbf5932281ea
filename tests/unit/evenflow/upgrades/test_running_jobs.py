"""Upgrades of running jobs on the local runtime: the ends that they come to, and what they refuse."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pytest
from patience import patience, until

import evenflow as ef

WINDOW = ef.MetricsConfig(window="50ms")
KEYS = 200


BY_VERSION = Counter()
"""The rows that the job emits, by the version of the code."""


def note(row):
    """Count a row; the counts are no part of the function's code, as a global variable would be."""
    import_module(__name__).BY_VERSION[row["version"]] += 1


@pytest.fixture
def rows():
    BY_VERSION.clear()
    return BY_VERSION


def program(version=1, *, function=None, source=None, keys=("key",), on_error="stop"):
    def price(row):
        return {**row, "price": row["seq"] % 100 * version}

    def total(state, row):
        return (state or 0) + row["price"], {"key": row["key"], "version": version}

    flow = ef.Dataflow("shop")
    read = flow.read(source or ef.generate(keys=KEYS, rate=5_000))
    priced = read.map(function or price, on_error=on_error).named("price")
    priced.key_by(*keys).stateful_map(total).named("total").write(ef.to_callback(note))
    return flow


@pytest.fixture
def run(rows, tmp_path, waiting_for_jobs):
    jobs = []

    def start(flow=None, *, saves=True, **options):
        checkpoint = ef.CheckpointConfig(dir=str(tmp_path / "checkpoints"), interval="200ms") if saves else ef.CheckpointConfig()
        config = ef.JobConfig(parallelism=2, metrics=WINDOW, checkpoint=checkpoint, **options)
        job = (flow or program()).run(runtime="local", config=config)
        jobs.append(job)
        until(lambda: rows or job.status().error)
        assert job.status().error is None
        return job

    yield start
    for job in jobs:
        job.cancel()


def upgraded(job, flow, **options):
    return job.upgrade(flow, timeout=patience(60), **{"canary": 0.2, "watch": patience(1), "max_slowdown": 1e6, **options})


def test_the_same_program_changes_nothing(run, rows):
    job = run()
    assert not job.plan_upgrade(program()).changed_stages
    assert upgraded(job, program()) is None
    assert len(job.upgrades()) == 0


def test_new_code_takes_over_and_both_versions_run_meanwhile(run, rows):
    job, states = run(), []

    def see(report):
        if report.state not in states:
            states.append(report.state)
        if report.state is ef.UpgradeState.WATCHING and report.compared:
            until(lambda: rows[2])

    report = upgraded(job, program(2), seen=see)
    assert report.state is ef.UpgradeState.DONE
    assert report.operators == ("generate", "total")
    assert report.keys_moved > 0
    assert [one.operator for one in report.compared] == ["generate", "total"]
    assert all(one.old.rows and one.new.rows for one in report.compared)
    assert ef.UpgradeState.WATCHING in states
    assert job.status().workers == ("generate-0v2", "generate-1v2", "total-0v2", "total-1v2")
    until(lambda: tuple(figures.worker for figures in job.metrics()) == job.status().workers)
    before = rows[2]
    until(lambda: rows[2] > before + 100)
    old = rows[1]
    until(lambda: rows[2] > before + 1_000)
    assert rows[1] == old
    assert str(job.upgrades()).startswith("upgrades")


def test_upgrades_follow_each_other_and_workers_that_join_later_run_the_newest_code(run, rows):
    job = run()
    upgraded(job, program(2), canary=0)
    upgraded(job, program(3), canary=0)
    job.scale("total", 3, timeout=patience(60))
    assert job.status().workers[-3:] == ("total-0v3", "total-1v3", "total-2v3")
    assert [report.version for report in job.upgrades()] == [2, 3]


def test_only_workers_of_changed_operators_are_replaced(run, rows):
    def half(row):
        return {**row, "price": 1}

    job = run()
    report = upgraded(job, program(function=half))
    assert report.operators == ("generate",)
    assert job.status().workers == ("generate-0v2", "generate-1v2", "total-0", "total-1")


def failing(row):
    if row["seq"] % 50 == 49:
        raise ValueError("a bug")
    return {**row, "price": 1}


def test_code_that_raises_is_taken_back_and_the_job_goes_on(run, rows):
    job = run()
    with pytest.raises(ef.UpgradeRolledBackError, match="a bug") as caught:
        upgraded(job, program(2, function=failing))
    assert caught.value.report.state is ef.UpgradeState.ROLLED_BACK
    before = rows[1]
    until(lambda: rows[1] > before + 500)
    assert job.status().state == "running"
    assert job.status().workers == ("generate-0", "generate-1", "total-0", "total-1")
    assert upgraded(job, program(3)).state is ef.UpgradeState.DONE


def test_code_that_raises_ends_a_job_without_checkpoints(run, rows):
    job = run(saves=False)
    with pytest.raises((ef.UpgradeRolledBackError, ef.JobNotRunningError)):
        upgraded(job, program(2, function=failing))
    with pytest.raises(ef.RecordError, match="a bug"):
        job.wait(patience(60))


def test_code_that_refuses_records_is_taken_back_while_the_stream_goes_on(run, rows):
    job = run(program(on_error="skip"))
    with pytest.raises(ef.UpgradeRolledBackError, match="the new code refused"):
        upgraded(job, program(2, function=failing, on_error="skip"), watch="1m")
    status = job.status()
    assert status.restarts == 0
    assert status.workers == ("generate-0", "generate-1", "total-0", "total-1")


def test_so_many_refused_records_can_be_allowed(run, rows):
    job = run(program(on_error="skip"))
    report = upgraded(job, program(2, function=failing, on_error="skip"), max_errors=10**9)
    assert report.state is ef.UpgradeState.DONE


def test_slow_code_is_taken_back(run, rows):
    def slow(row):
        sum(range(400_000))
        return {**row, "price": 1}

    job = run(program(source=ef.generate(keys=KEYS, rate=240)))
    with pytest.raises(ef.UpgradeRolledBackError, match="the new code takes"):
        upgraded(job, program(2, function=slow, source=ef.generate(keys=KEYS, rate=240)), watch=patience(60), max_slowdown=3.0)
    assert job.status().restarts == 0


def test_an_upgrade_can_be_aborted_while_it_is_watched(run, rows):
    job = run()

    def abort(report):
        if report.state is ef.UpgradeState.WATCHING:
            job.abort_upgrade()

    with pytest.raises(ef.UpgradeRolledBackError, match="aborted by hand"):
        upgraded(job, program(2), watch="1h", seen=abort)
    assert job.status().workers == ("generate-0", "generate-1", "total-0", "total-1")
    with pytest.raises(ef.RequestError, match="no upgrade is under way"):
        job.abort_upgrade()


def test_named_keys_get_the_new_code_first(run, rows):
    job, hot = run(), {}

    def see(report):
        if report.state is ef.UpgradeState.WATCHING and report.compared and not hot:
            new = [w for w in job.metrics() if w.worker == "total-2v2"]
            hot.update(rows=sum(figures.rows_in for figures in new))

    report = upgraded(job, program(2), canary_keys=[1, 2, 3], seen=see, watch=patience(2))
    assert report.state is ef.UpgradeState.DONE
    shares = [one.new.rows / (one.old.rows + one.new.rows) for one in report.compared if one.operator == "total"]
    assert 0 < shares[0] < 0.1


class Totals(ef.KeyedFunction):
    total = ef.value_state(0)

    def on_row(self, key, row, context):
        self.total += row["value"]
        return [{"key": key, "version": 1}]


class TotalsInCents(ef.KeyedFunction):
    state_version = 2
    cents = ef.value_state(0, type=int, renamed_from="total")

    def migrate_state(self, version, state):
        return {"cents": int(state.get("cents", 0) * 100)}

    def on_row(self, key, row, context):
        self.cents += int(row["value"] * 100)
        return [{"key": key, "version": 2}]


def processing(function):
    flow = ef.Dataflow("shop")
    flow.read(ef.generate(keys=KEYS, rate=5_000)).key_by("key").process(function).named("total").write(ef.to_callback(note))
    return flow


def test_state_is_migrated_and_no_checkpoint_completes_before_the_decision(run, rows):
    job, numbers = run(processing(Totals())), []
    found = job.plan_upgrade(processing(TotalsInCents()))
    assert not found.can_go_back("total")

    def see(report):
        if report.state is ef.UpgradeState.WATCHING:
            number = job.status().completed_checkpoints
            if job.upgrades()[-1].state is ef.UpgradeState.WATCHING:  # still: nothing was decided meanwhile
                numbers.append(number)

    report = upgraded(job, processing(TotalsInCents()), watch=patience(2), seen=see)
    assert report.state is ef.UpgradeState.DONE
    assert numbers
    assert len(set(numbers)) == 1
    until(lambda: job.status().completed_checkpoints > numbers[-1])
    assert isinstance(job.read("total", 1)["cents"], int)


def test_a_canary_that_could_not_be_taken_back_is_refused(run, rows):
    job = run(processing(Totals()), saves=False)
    with pytest.raises(ef.RequestError, match="CheckpointConfig"):
        upgraded(job, processing(TotalsInCents()))
    assert upgraded(job, processing(TotalsInCents()), canary=0).state is ef.UpgradeState.DONE


def test_changes_that_need_a_restart_are_refused_with_a_table(run, rows):
    job, other = run(), ef.Dataflow("other")
    other.read(ef.from_items([1])).write(ef.to_list([]))
    with pytest.raises(ef.RequestError, match="stop the job with a savepoint") as caught:
        upgraded(job, program(keys=("key", "seq")))
    assert "restart" in str(caught.value)
    with pytest.raises(ef.FlowError, match="give the new flow the same name"):
        upgraded(job, other)
    with pytest.raises(ef.FlowError, match="expected a Dataflow"):
        upgraded(job, "shop_v2.py")


def test_other_changes_wait_for_the_end_of_an_upgrade(run, rows):
    job, errors = run(), []

    def see(report):
        if report.state is ef.UpgradeState.WATCHING and not errors:
            for change in (
                lambda: job.scale("total", 3),
                lambda: job.migrate("total", groups=[1], to=0),
                lambda: job.rebalance("total"),
                lambda: job.upgrade(program(3)),
            ):
                with pytest.raises(ef.JobBusyError, match="upgrade 0 is under way"):
                    change()
                errors.append(change)
            job.abort_upgrade()

    with pytest.raises(ef.UpgradeRolledBackError):
        upgraded(job, program(2), seen=see, watch="1h")
    assert len(errors) == 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"canary": 1.0}, "canary=1.0: expected a share"),
        ({"canary": True}, "canary=True: expected a share"),
        ({"max_errors": -1}, "max_errors=-1"),
        ({"max_slowdown": 0.5}, "max_slowdown=0.5"),
        ({"on_failure": "stop"}, "on_failure='stop': expected one of 'rollback', 'continue'"),
        ({"watch": "soon"}, "watch"),
    ],
)
def test_impossible_options_are_refused(run, rows, options, problem):
    job = run()
    with pytest.raises((ef.RequestError, ef.FlowError), match=problem):
        upgraded(job, program(2), **options)


def test_an_upgrade_ends_with_its_job(run, rows):
    job = run()

    def stop(report):
        if report.state is ef.UpgradeState.WATCHING:
            job.stop()

    with pytest.raises((ef.UpgradeRolledBackError, ef.JobNotRunningError)):
        upgraded(job, program(2), watch="1h", seen=stop)
    job.wait(patience(30))
