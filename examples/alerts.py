"""Sensors that stay too hot for three readings in a row: state per key, in plain Python."""

from __future__ import annotations

from typing import Any

import evenflow as ef

Row = dict[str, Any]
LIMIT = 80.0


def watch(hot: int | None, reading: Row) -> tuple[int, Row | None]:
    """Count a sensor's consecutive readings above the limit in `hot`; return an alert at the third."""
    hot = (hot or 0) + 1 if reading["celsius"] > LIMIT else 0
    return hot, {"sensor": reading["sensor"], "celsius": reading["celsius"]} if hot == 3 else None


def alerts(readings: list[Row], found: list[Row]) -> ef.Dataflow:
    """Return a dataflow that appends a row per alert to `found`."""
    flow = ef.Dataflow("alerts")
    flow.read(ef.from_items(readings)).key_by("sensor").stateful_map(watch).write(ef.to_list(found))
    return flow


if __name__ == "__main__":
    celsius = {"boiler": [79.0, 81.5, 82.0, 84.5, 85.0], "pump": [61.0, 90.0, 60.5, 91.0, 62.0]}
    readings = [{"sensor": name, "celsius": values[i]} for i in range(5) for name, values in celsius.items()]
    found: list[Row] = []
    alerts(readings, found).run(runtime="local").wait()
    print(found)
