"""The dataflow: write it, explain it and run it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .building.tables import add_table
from .connectors.files.remote import folder_or_url
from .engine.errors import ClusterError, FlowError
from .engine.plan.columns import check_columns
from .engine.plan.graph import Graph, check_name
from .engine.plan.physical import Plan
from .engine.plan.planner import plan
from .engine.plan.upgrade.operator_verdicts import identities
from .engine.sink import Sink
from .engine.source import Source
from .environment import with_environment
from .explain import explain, to_mermaid
from .program import starts
from .scheduler.configs.job import JobConfig
from .scheduler.configs.run import PATHS
from .scheduler.record.restoring.fitting import Allowed
from .scheduler.record.restoring.run_claim import RESUME, RunClaim, StartOptions
from .state.redacted_output import clearing, guard_credentials
from .stream import Stream

if TYPE_CHECKING:
    from .actors.job.first_manifest import Savepoint
    from .actors.job.starting import Starting
    from .job import Job


class Dataflow:
    """A graph of streams from sources to sinks. `name` is also the job's name.

    >>> import evenflow as ef
    >>> flow, rows = ef.Dataflow("squares"), []
    >>> numbers = flow.read(ef.from_items([1, 2, 3]))
    >>> _ = numbers.map(lambda row: row["item"] ** 2).write(ef.to_list(rows))
    >>> _ = flow.run(runtime="local").wait()
    >>> rows
    [{'item': 1}, {'item': 4}, {'item': 9}]
    """

    def __init__(self, name: str) -> None:
        check_name(name, "dataflow")
        self.name = name
        self.graph = Graph(name)

    def read(self, source: Source) -> Stream:
        """Return the stream of a source's rows; of a source of a table's changes, the updates of the table's rows."""
        if not isinstance(source, Source):
            raise FlowError(f'read({source!r}): expected a source, for example ef.read_parquet("flights/")')
        node = self.graph.add(source.name, source)
        return Stream(self, add_table(self.graph, node, source.table_key) if source.table_key else node)

    def plan(self, parallelism: int | None = None, config: JobConfig | None = None) -> Plan:
        """Return the physical plan: stages, workers, channels. Raises FlowError if the flow can't run."""
        config = _config(config, parallelism)
        physical = plan(self.graph, parallelism=config.parallelism, combine=config.combine, settings=config.task_settings())
        return replace(physical, identities=identities(physical))

    def explain(self, parallelism: int | None = None, config: JobConfig | None = None) -> str:
        """Describe the logical and the physical plan, and the end-to-end guarantee, as text."""
        config = with_environment(_config(config, parallelism), os.environ)
        return explain(self.graph, self.plan(config=config), config.worker)

    def to_mermaid(self) -> str:
        """Draw the logical plan as a Mermaid flowchart."""
        return to_mermaid(self.graph)

    def _repr_html_(self) -> str:
        """Draw the logical plan in a notebook."""
        from .pictures.graph import graph_picture

        return graph_picture(self.graph).svg

    @clearing
    def run(
        self,
        *,
        runtime: Literal["ray", "local"] = "ray",
        parallelism: int | None = None,
        config: JobConfig | None = None,
        from_savepoint: str | Path | None = None,
        allow_lost_state: bool = False,
        allow_new_state: bool = False,
        resume: Literal["auto", "required", "never"] = "auto",
        takeover: bool = False,
        detached: bool = False,
        ui: bool = False,
    ) -> Job:
        """Start the flow as a job and return its handle at once.

        `runtime="ray"` uses the Ray cluster to which this process is connected, or the one that RAY_ADDRESS names, or your own on this
        machine, or starts one; `"local"` runs everything in one thread of this process. `from_savepoint` is a folder that
        `job.savepoint(path)` wrote, or the folder of a checkpoint: the job continues from there, with this flow's parallelism. Operators
        are matched by their names, and their aggregates by theirs. State that matches no operator is an error unless `allow_lost_state`,
        which discards it; an aggregate without saved state is an error unless `allow_new_state`, which starts it empty.

        With CheckpointConfig(dir=...) the same program, started again after the loss of its process or machine, or after the job failed,
        was cancelled or was stopped, continues its unfinished run from the newest complete checkpoint, and says so in one line of the log:
        no row is lost or written twice. A run that ended because its sources did is finished, and a new one begins. `resume="required"`
        raises RequestError if there is nothing to continue; `"never"` begins a new run and keeps the checkpoints of the other one, as does
        `from_savepoint`. While another process runs the job on the same folder, RequestError names that process, unless `takeover=True`
        takes over its run: that process then ends with an error.

        A `detached` job survives this process, on a cluster that does too; `ef.connect(name)` returns a handle of it in any process, and
        the job continues when that process ends. Environment variables such as EVENFLOW_CHECKPOINT give settings that `config` leaves at
        their defaults. `ui=True` starts the live web page (`evenflow ui`), which ends with this process, and
        prints its address. Raises FlowError if the flow can't run or doesn't fit the saved state, ConnectorError if a source can't be read
        or a sink can't be written.
        """
        starts(self)
        guard_credentials()
        config = with_environment(_config(config, parallelism), os.environ)
        start = _runtime(runtime)
        if ui and runtime != "ray":
            raise FlowError(
                f'ui=True shows jobs of runtime="ray": a job of the runtime "{runtime}" can\'t be reached by the page\'s process'
            )
        config = _with_absolute_folders(config)
        allowed = Allowed(allow_lost_state, allow_new_state)
        savepoint = None if from_savepoint is None else _savepoint(from_savepoint, allowed)
        physical = self.plan(config=config)
        _check_resume(resume, config, from_savepoint)
        wish = StartOptions(resume, takeover, allowed, from_savepoint is not None)
        if savepoint is not None:
            savepoint.check(physical)  # before a sink empties its folder
        sources = physical.sources
        sinks = {node.name: node.operator for node in self.graph if isinstance(node.operator, Sink)}
        if detached:
            _check_detached(runtime, {**sources, **sinks})
        checkpoints = config.checkpoint.url(self.name)
        for operator, sink in sinks.items():
            sink.of_job(self.name, operator, checkpoints)
        started: list[Source | Sink] = []
        begun = _Begun(checkpoints, physical, wish, detached=detached)
        try:
            _start(sources.values(), started)
            # Sources know more by now, and no sink has emptied its folder yet.
            physical = physical.knowing(check_columns(self.graph, sources))
            claim = begun.claim()
            for sink in sinks.values():
                sink.of_run(claim.run, continues=claim.resumes)
            _start(sinks.values(), started)
            options: dict[str, Any] = {"detached": True} if detached else {}
            running = start(physical, config, savepoint, claim, **options)
        except BaseException:
            for connector in reversed(started):
                connector.stop()
            begun.release()
            raise
        from .job import Job

        parts = ({}, {}) if detached else (sources, sinks)
        over = (lambda: None) if detached else begun.over
        job = Job(self.name, running, *parts, over, started_here=True)
        if ui:
            _show(job)
        return job


def _with_absolute_folders(config: JobConfig) -> JobConfig:
    """Make the folders absolute, for workers with another working directory. Raises FlowError for a folder that is a file."""
    _check_folder(config.checkpoint.dir)
    if config.checkpoint.dir is not None:
        folder = folder_or_url(config.checkpoint.dir, "CheckpointConfig(dir=...)")
        config = replace(config, checkpoint=replace(config.checkpoint, dir=folder))
    if config.state.dir is not None:
        config = replace(config, state=replace(config.state, dir=folder_or_url(config.state.dir, "StateConfig(dir=...)")))
    paths: dict[str, Any] = {name: str(Path(path).absolute()) for name in PATHS if (path := getattr(config.metrics, name)) is not None}
    return replace(config, metrics=replace(config.metrics, **paths)) if paths else config


def _savepoint(path: str | Path, allowed: Allowed) -> Savepoint:
    from .actors.job.first_manifest import Savepoint

    return Savepoint(folder_or_url(path, "from_savepoint=..."), allowed)


def _check_resume(resume: str, config: JobConfig, savepoint: str | Path | None) -> None:
    """Raise FlowError for arguments that contradict each other."""
    if resume not in RESUME:
        raise FlowError(f"resume={resume!r}: expected one of {', '.join(map(repr, RESUME))}")
    if resume == "required" and config.checkpoint.dir is None:
        raise FlowError('resume="required" continues from a checkpoint: give the folder, JobConfig(checkpoint=ef.CheckpointConfig(dir))')
    if resume == "required" and savepoint is not None:
        raise FlowError('resume="required" continues this job\'s own run, and from_savepoint= begins a new one: choose one of them')


class _Begun:
    """The start of a run in the checkpoint folder at `url`; None if the job saves no state, so that it has no run to continue."""

    def __init__(self, url: str | None, plan: Plan, wish: StartOptions, *, detached: bool) -> None:
        self._url, self._plan, self._wish, self._detached = url, plan, wish, detached
        self._starting: Starting | None = None
        self._claim: RunClaim | None = None

    def claim(self) -> RunClaim:
        """Claim the run. Raises RequestError, FlowError and StoreError as `Starting.claim` does."""
        if self._url is None:
            return RunClaim(secrets.token_hex(8), secrets.token_hex(8))
        from .actors.job.starting import Starting

        self._starting = Starting(self._url, self._plan, self._wish, detached=self._detached)
        self._claim = self._starting.claim()
        return self._claim

    def release(self) -> None:
        """Release the claim, if there is one: the job could not be started."""
        if self._starting is not None and self._claim is not None:
            self._starting.release(self._claim)

    def over(self) -> None:
        """Note that the job has ended."""
        if self._claim is not None:
            from .actors.job.starting import over

            over(self._claim)


def _show(job: Job) -> None:
    """Start the page's process, and print the address of the job's page, or the reason why it has none."""
    from .actors.cluster import address
    from .page.page_process import PAGE

    try:
        where = f"is at {PAGE.address(job.name, address())}"
    except ClusterError as error:
        where = f"has no page: {error}"
    sys.stdout.write(f"job `{job.name}` {where}\n")
    sys.stdout.flush()


def _start(connectors: Iterable[Source | Sink], started: list[Source | Sink]) -> None:
    for connector in connectors:
        started.append(connector)
        connector.start()


def _check_detached(runtime: str, connectors: Mapping[str, Source | Sink]) -> None:
    """Raise FlowError for a job that can't outlive the process that starts it."""
    if runtime != "ray":
        raise FlowError(f'a job of the runtime "{runtime}" runs in this process: detached=True is for runtime="ray"')
    for name, connector in connectors.items():
        if connector.driver_part is not None:
            raise FlowError(f"`{name}` can't be part of a detached job: {connector.driver_part} would end with this process")


def _check_folder(path: str | Path | None) -> None:
    """Raise FlowError if the checkpoint folder is a file: a worker would try to write into it again and again."""
    if path is not None and "://" not in str(path) and Path(path).exists() and not Path(path).is_dir():
        raise FlowError(f"CheckpointConfig(dir={str(path)!r}) is a file: give a folder, which is made if it isn't there")


def _config(config: JobConfig | None, parallelism: int | None) -> JobConfig:
    config = config if config is not None else JobConfig()
    if not isinstance(config, JobConfig):
        raise FlowError(f"config={config!r:.200}: expected ef.JobConfig(...)")
    return config if parallelism is None else replace(config, parallelism=parallelism)


def _runtime(name: str) -> Any:
    """Return the function that starts a job on the runtime: (plan, config) -> Runtime. Import only that runtime's modules."""
    if name == "local":
        from .actors.local import LocalJob

        return LocalJob
    if name == "ray":
        from .actors.cluster import start_job

        return start_job
    raise FlowError(f'runtime={name!r}: expected "ray" or "local"')
