"""The running count in Quix Streams, in an interpreter that has it and no evenflow: `python kafka_quix_job.py JSON`."""

from __future__ import annotations

import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from quixstreams import Application, State

SILENCE_SECONDS = 30.0
"""After which the run is over though rows are missing."""


def main(given: dict[str, Any]) -> None:
    """Count `rows` records, then note what was counted and how long it took."""
    app = Application(
        given["bootstrap"],
        consumer_group=f"bench-{uuid.uuid4().hex}",
        auto_offset_reset="earliest",
        consumer_extra_config=given["options"],
        state_dir=given["state"],
        use_changelog_topics=False,
        auto_create_topics=False,
        loglevel="WARNING",
    )
    begun: dict[str, float] = {}
    newest: dict[int, int] = {}

    def counted(row: dict[str, Any], state: State) -> dict[str, int]:
        if not begun:
            begun.update(begun=time.monotonic(), cpu=time.process_time())
        n = state.get("n", 0) + 1
        state.set("n", n)
        return {"key": row["key"], "n": n}

    def keep(row: dict[str, int]) -> None:
        newest[row["key"]] = row["n"]

    counts = app.dataframe(app.topic(given["topic"], value_deserializer="json", key_deserializer="bytes"))
    counts = counts.apply(counted, stateful=True).update(keep)
    app.run(counts, count=given["rows"], timeout=SILENCE_SECONDS, collect=False)
    note = {**begun, "ended": time.monotonic(), "cpu_seconds": time.process_time() - begun.pop("cpu"), "counts": newest}
    Path(given["note"]).write_text(json.dumps(note))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
