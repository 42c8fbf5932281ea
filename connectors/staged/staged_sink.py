"""The base of sinks into transactional systems: rows wait in the checkpoint folder until their checkpoint is complete.

A writer stages rows as Arrow files (`staging_writer.py`, `staging.py`) and describes them. When the checkpoint is complete, the
coordinator writes the staged rows in transactions that also advance a marker. So no transaction is open between preparing and
committing: no time-out loses rows, and a repeated commit reads its progress from the marker. A subclass implements the writing.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import Any

from ...engine.sink import Sink
from ..files.claim import Claim, dead_runs, owner_file
from .staging import Staged, StagedFile, Staging, StagingPlace

OF_RUN = ("run", "_claim", "_temporary", "_identity", "_staging")
"""The attributes of a sink that belong to a run of a job, not to its settings."""


class StagedSink(Sink):
    """A sink that stages its rows. `target`: the destination, for example a topic.

    A sink that has written once keeps its run until it starts again.
    """

    file_rows, file_bytes = 50_000, 16 << 20
    """The approximate size of a staged file."""

    def __init__(self, name: str, target: str) -> None:
        self.name, self._target = name, target
        self.run = uuid.uuid4().hex[:12]
        self._claim: Claim | None = None
        self._temporary: str | None = None
        self.of_job("job", name, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None}

    def given_settings(self) -> dict[str, Any]:
        return self.settings_without(*OF_RUN)

    def continuing(self, other: Sink) -> Sink:
        assert isinstance(other, StagedSink)
        sink = copy(self)
        for name in OF_RUN:
            setattr(sink, name, getattr(other, name))
        return sink

    @property
    def place(self) -> StagingPlace:
        """The staging folder of this run, and the destination of its rows."""
        return StagingPlace(self._staging, self._target, self._identity, self.run)

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        self._identity = f"{job}/{operator}"
        self._temporary = None if checkpoints is not None else f"{tempfile.gettempdir()}/evenflow-staged-{uuid.uuid4().hex}"
        self._staging = self._temporary or f"{checkpoints}/staged-{operator}"

    def start(self) -> None:
        self.run = uuid.uuid4().hex[:12]

    def stop(self) -> None:
        """Remove files that killed workers of this run never sealed; without a checkpoint folder, all files."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                self._remove_run(Staging(self._staging), self.run, keep=None)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        """Write the staged rows to the place for which they were staged, also those of a previous job that this one continues."""
        staged = [Staged(**each) for each in committables]
        for place in sorted({each.place for each in staged}):
            files = [StagedFile.of(entry) for each in staged if each.place == place for entry in each.files]
            self.write_staged(checkpoint, place, files)
            with contextlib.suppress(OSError):  # the sweep of a later job removes remaining files
                Staging(place.staging).remove(file.name for file in files)
        if not staged:
            self.nothing_staged(checkpoint)
        return []

    @abstractmethod
    def write_staged(self, checkpoint: int, place: StagingPlace, files: Sequence[StagedFile]) -> None:
        """Write the rows that a run staged for a checkpoint, unless they are written. Raises ConnectorError."""

    def nothing_staged(self, checkpoint: int) -> None:
        """Handle a checkpoint without rows, for which `write_staged` isn't called."""

    @property
    def retractable(self) -> bool:
        """False: written rows can't be retracted."""
        return False

    def sweep(self) -> None:
        """Remove sealed files that were not committed: they belong to old attempts."""
        staging = Staging(self._staging)
        staging.remove(staging.names(self.run))

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        """Remove files of dead runs, on a local file system only, where a lock shows that a run is alive."""
        folder = Staging(self._staging).folder
        if folder is None or self._temporary is not None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._claim = self._claim or Claim(folder, self.run, job)
        for run in dead_runs(folder, job):
            committables = needed()
            if committables is not None:
                files = [entry for each in committables if isinstance(each, dict) for entry in each.get("files", ())]
                self._remove_run(Staging(self._staging), run, {name for name, *_ in files})

    def _remove_run(self, staging: Staging, run: str, keep: Collection[str] | None) -> None:
        """Remove the files of a finished run, except the sealed ones in `keep` (None keeps all of them)."""
        staging.remove_hidden(run)
        names = staging.names(run)
        kept = [name for name in names if keep is None or name in keep]
        staging.remove(name for name in names if name not in kept)
        if not kept and staging.folder is not None:
            owner_file(staging.folder, run).unlink(missing_ok=True)
