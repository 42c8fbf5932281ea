"""Lists the checkpoints in a folder or an object store, without a job and without a cluster.

>>> import tempfile
>>> import evenflow as ef
>>> folder = tempfile.mkdtemp()
>>> flow = ef.Dataflow("shop")
>>> _ = flow.read(ef.from_items([1, 2, 3])).write(ef.to_list([]))
>>> _ = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(folder))).wait()
>>> [(saved.job, saved.number, saved.finished) for saved in ef.list_checkpoints(folder)]
[('shop', 1, True)]
>>> ef.latest_checkpoint(folder, "shop") == ef.list_checkpoints(folder)[-1].url
True
>>> ef.latest_checkpoint(folder, "another")
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .actors.task.saved_state import SavedState
from .connectors.files.remote import folder_or_url
from .engine.errors import ConnectorError
from .scheduler.protocol.manifest import Manifest
from .scheduler.record.restoring.run_claim import BEATING, ENDED, LifeSign, RunClaim
from .state.errors import CorruptStateError
from .state.store import CheckpointStore, folder_name, folder_names


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A complete checkpoint of `job`, taken at `created`.

    `url`: its folder, for `flow.run(from_savepoint=...)` and `ef.read_savepoint`. `keys` and `size` (bytes) of all files that it needs.
    `finished`: True if the stream had ended, so that there is nothing to continue.
    """

    job: str
    number: int
    created: datetime
    url: str
    keys: int
    size: int
    finished: bool


def list_checkpoints(path: str | Path, job: str | None = None) -> list[SavedCheckpoint]:
    """Return the complete checkpoints in the folder or URL `path`, that of CheckpointConfig(dir=...), by job and age, oldest first.

    `job`: only those of the job of that name. Raises ConnectorError if the folder can't be read.
    """
    root = _root(path, "list_checkpoints(...)")
    return [saved for name in _jobs(root, job) for saved in _saved(f"{root}/{name}")]


def latest_checkpoint(path: str | Path, job: str) -> str | None:
    """Return the URL of the checkpoint from which the job's run would continue, in the folder or URL `path`; None if there is none.

    `flow.run()` finds it itself. Raises ConnectorError if the folder can't be read.
    """
    url = f"{_root(path, 'latest_checkpoint(...)')}/{job}"
    try:
        claim = _newest_claim(CheckpointStore(url))
        newest = SavedState(url, 1, claim).continued()
    except OSError as error:
        raise ConnectorError(f"{url} can't be read: {error}") from error
    return None if newest is None else f"{url}/{folder_name(newest.checkpoint)}"


def runs_of(path: str | Path, job: str | None = None) -> dict[str, str]:
    """Describe the newest run of each job in the folder: its process, and how it ended or when it gave a sign of life."""
    root = _root(path, "list_checkpoints(...)")
    return {name: _run(CheckpointStore(f"{root}/{name}")) for name in _jobs(root, job)}


def _root(path: str | Path, call: str) -> str:
    return folder_or_url(path, call).rstrip("/")


def _jobs(root: str, job: str | None) -> list[str]:
    try:
        return [name for name in folder_names(root) if name == (job or name)]
    except OSError as error:
        raise ConnectorError(f"{root} can't be read: {error}") from error


def _saved(url: str) -> list[SavedCheckpoint]:
    store, found = CheckpointStore(url), []
    for number in store.completed():
        try:
            manifest = Manifest.from_bytes(store.manifest(number))
        except CorruptStateError:  # no job begins from it either
            continue
        created = datetime.fromtimestamp(manifest.created, UTC)
        keys, size = sum(file.keys for file in manifest.files), sum(file.size for file in manifest.files)
        found.append(SavedCheckpoint(manifest.job, number, created, f"{url}/{folder_name(number)}", keys, size, manifest.finished))
    return found


def _newest_claim(store: CheckpointStore) -> RunClaim:
    term = max(store.claims(), default=0)
    return RunClaim.from_bytes(term, store.claim_of(term) or b"")


def _run(store: CheckpointStore) -> str:
    claim = _newest_claim(store)
    sign = LifeSign.of(store.noted(claim.term, BEATING), store.noted(claim.term, ENDED))
    seen = f"last sign of life at {datetime.fromtimestamp(sign.at, UTC):%Y-%m-%d %H:%M:%S} UTC" if sign.at else "no sign of life yet"
    return f"{claim.owner or 'an unknown process'}: {sign.end.value if sign.end is not None else seen}"
