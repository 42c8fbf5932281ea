"""What a job's processes have printed.

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
class Printed:
    """The newest of what the process `whose` printed to a stream: its file, on its node, and where the text ends in it.

    `text` says why there is none if `path` is empty.
    """

    whose: str
    stream: str
    path: str
    text: str
    end: int = 0


def printed(processes: Mapping[str, str], lines: int, since: Mapping[tuple[str, str], int]) -> Iterator[Printed]:
    """The last `lines` of both streams of each process, or what came after `since`, by process and stream.

    `processes`: the names of their actors, by the names that the reader knows.
    """
    for whose, name in processes.items():
        known = {stream: since[whose, stream] for stream in STREAMS if (whose, stream) in since}
        try:
            actor: Any = ray.get_actor(name, namespace=NAMESPACE)
            found: Any = ray.get(actor.__ray_call__.remote(_own, lines, known), timeout=PATIENCE)
        except (ValueError, RayError) as error:
            yield Printed(whose, "stdout", "", f"can't be asked: {str(error).splitlines()[0]}")
            continue
        for stream, (path, text, end) in found.items():
            yield Printed(whose, stream, path, text, end)


def _own(_actor: object, lines: int, since: Mapping[str, int]) -> dict[str, tuple[str, str, int]]:
    """Of the process that runs this: file, text and where it ends, by stream; Ray has a file behind each."""
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
