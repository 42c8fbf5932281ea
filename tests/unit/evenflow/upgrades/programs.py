"""Programs as users write them, and edits of their text. A program defines `build()`, which returns a flow."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

PROGRAM = """
import dataclasses, functools, threading
import numpy as np
import evenflow as ef
import prices

RATE = 2
CURRENCIES = {"eur", "usd", "gbp", "chf"}
LIMITS = {"low": 1, "high": 9}
TABLE = np.arange(5)

@dataclasses.dataclass
class Discount:
    percent: int = 10
    def of(self, cents):
        return cents - cents * self.percent // 100

class Rounding:
    def __init__(self, to):
        self.to = to
    def __call__(self, row):
        return {**row, "cents": row["cents"] // self.to * self.to}

class Totals(ef.KeyedFunction):
    total = ef.value_state(type=int)
    def on_row(self, key, row, context):
        self.total = (self.total or 0) + row["cents"]
        yield {"user": key, "total": self.total}

def price(row):
    # cents in euros
    cents = row["cents"] * RATE
    return {"user": row["user"], "cents": cents, "currency": row["currency"]}

def is_known(row, least=LIMITS["low"]):
    return row["currency"] in CURRENCIES and row["cents"] >= least

def adding(fee):
    def add(row):
        return {**row, "cents": row["cents"] + fee}
    return add

def scaled(row, factor):
    return {**row, "cents": row["cents"] * factor + int(TABLE[1])}

def converted(row):
    return {**row, "cents": prices.in_cents(row["cents"])}

DISCOUNT = Discount()

def build():
    flow = ef.Dataflow("orders")
    orders = flow.read(ef.read_parquet("/data/orders", event_time="at", follow=True, poll_every="1s"))
    rows = orders.map(price).named("price").filter(is_known).named("known")
    rows = rows.map(lambda row: {**row, "cents": row["cents"] + 1}).named("plus")
    rows = rows.map(adding(5)).named("fee").map(functools.partial(scaled, factor=3)).named("scaled")
    rows = rows.map(converted).named("converted").map(Rounding(10)).named("rounded")
    rows = rows.map(lambda row: {**row, "cents": DISCOUNT.of(row["cents"])}).named("discount")
    rows = rows.filter(ef.col("cents") > 7).named("large")
    rows = rows.map_batches(lambda batch: batch.slice(0, 100)).named("cut")
    rows.key_by("user").process(Totals()).named("totals").write(ef.write_json("/out/totals", roll_bytes=1000, name="write_totals"))
    minutes = rows.key_by("currency").window(ef.tumbling("1m")).aggregate(n=ef.count(), cents=ef.sum("cents")).named("minutes")
    minutes.write(ef.write_parquet("/out/minutes", name="write_minutes"))
    return flow
"""

PRICES = """
FACTOR = 100
def whole(n):
    return int(n)
def in_cents(n):
    return whole(n) * FACTOR
def unused(n):
    return n + 1
"""


def module_of(name: str, text: str, folder: Path | str = "/work") -> ModuleType:
    """Create a module of this text, and make it importable."""
    module = ModuleType(name)
    module.__file__ = f"{folder}/{name}.py"
    sys.modules[name] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


def plan_of(text: str = PROGRAM, prices: str = PRICES, **options: Any) -> Any:
    """Return the plan of a program, as if its file were run."""
    module_of("prices", prices)
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "/work/orders.py", "exec"), scope)
    return scope["build"]().plan(**options)


def edited(text: str, *edits: tuple[str, str]) -> str:
    """Return the text with the first place of each edit replaced."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
