"""The output of a job's processes.

Each process reads the ends of its own log files: that works on every node, and without Ray's dashboard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from .process import NAMESPACE

STREAMS = {"stdout": 1, "stderr": 2}
MOST_BYTES = 1 << 20
PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """The newest output of the process `whose` to a stream: its file, on its node, and the end position of the text.

    `text` says why there is none if `path` is empty.
    """

    whose: str
    stream: str
    path: str
    text: str
    end: int = 0


def read_output(processes: Mapping[str, str], lines: int, since: Mapping[tuple[str, str], int]) -> Iterator[ProcessOutput]:
    """Yield the last `lines` of both streams of each process, or the output after `since`, by process and stream.

    `processes`: the names of their actors, by the names that the reader knows.
    """
    for whose, name in processes.items():
        known = {stream: since[whose, stream] for stream in STREAMS if (whose, stream) in since}
        try:
            actor: Any = ray.get_actor(name, namespace=NAMESPACE)
            found: Any = ray.get(actor.__ray_call__.remote(_own, lines, known), timeout=PATIENCE)
        except (ValueError, RayError) as error:
            yield ProcessOutput(whose, "stdout", "", f"can't be reached:  {str(error).splitlines()[0]}")
            continue
        for stream, (path, text, end) in found.items():
            yield ProcessOutput(whose, stream, path, text, end)


def _own(_actor: object, lines: int, since: Mapping[str, int]) -> dict[str, tuple[str, str, int]]:
    """Return file, text and end position by stream of the process that runs this; Ray has a file for each stream."""
    found: dict[str, tuple[str, str, int]] = {}
    for stream, number in STREAMS.items():
        path = Path(f"/proc/self/fd/{number}").readlink()
        if not path.is_file():
            continue
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(since.get(stream, max(0, size - MOST_BYTES)))
            text = file.read(MOST_BYTES).decode(errors="replace")
            end = file.tell()
        if stream not in since:
            text = "".join(text.splitlines(keepends=True)[-lines:])
        found[stream] = str(path), text, end
    return found
