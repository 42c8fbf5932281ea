"""Where a simulated job's checkpoints lie: in memory, as chunks and manifests that have been through their codecs."""

from __future__ import annotations

from ..engine.batch import Batch
from ..scheduler.manifest import Manifest
from ..state.files import StateFile


class Storage:
    """What survives every crash."""

    def __init__(self) -> None:
        self._files: dict[str, list[Batch]] = {}
        self._manifests: dict[int, bytes] = {}

    def put(self, path: str, chunks: list[Batch]) -> StateFile:
        """Keep the chunks of one worker."""
        self._files[path] = chunks
        return StateFile(path, 0, "", sum(chunk.num_rows for chunk in chunks))

    def chunks(self, file: StateFile) -> list[Batch]:
        """What was put."""
        return self._files[file.path]

    def complete(self, manifest: Manifest) -> None:
        """Write the manifest."""
        self._manifests[manifest.checkpoint] = manifest.to_bytes()

    def newest(self) -> Manifest | None:
        """The newest manifest."""
        return Manifest.from_bytes(self._manifests[max(self._manifests)]) if self._manifests else None
