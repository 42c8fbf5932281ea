"""The rows that the flows of simulated runs read."""

from __future__ import annotations

from random import Random
from typing import Any

import evenflow as ef


def disordered(rows: int = 48, *, seed: int = 5, keys: tuple[Any, ...] = ("a", "b", "c", "d", "e", None)) -> list[dict[str, Any]]:
    """Return rows that are up to half a second out of order; `lane` is a key that only one source worker of 1, 2, 3 or 4 has."""
    random = Random(seed)
    return [
        {
            "key": random.choice(keys),
            "half": random.choice((True, False, None)),
            "lane": i % 12,
            "ts": 10_000 + i * 100 - random.randrange(500),
            "value": random.choice((None, random.randrange(-1000, 1000))),
            "price": random.randrange(8000) / 8,
            "seq": i,
        }
        for i in range(rows)
    ]


def source(**options: Any) -> Any:
    return ef.from_items(disordered(**options), event_time="ts", max_delay="500ms")
