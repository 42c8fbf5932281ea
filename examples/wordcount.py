"""Counts the words of some text: .venv/bin/python examples/wordcount.py FILE ..."""

from __future__ import annotations

import re
import sys

import evenflow as ef


def wordcount(paths: list[str], counts: list[dict[str, object]]) -> ef.Dataflow:
    """Return a dataflow that appends a row per word to `counts`."""
    flow = ef.Dataflow("wordcount")
    lines = flow.read(ef.read_text(paths))
    words = lines.flat_map(lambda row: re.findall(r"[^\W\d_]+", row["item"].lower()))
    words.key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list(counts))
    return flow


if __name__ == "__main__":
    counts: list[dict[str, object]] = []
    wordcount(sys.argv[1:] or [__file__], counts).run(runtime="local").wait()
    for row in sorted(counts, key=lambda row: (-int(str(row["n"])), str(row["item"])))[:10]:
        print(f"{row['n']:>7} {row['item']}")
