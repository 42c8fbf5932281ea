"""Support for tests of transports: batches, patience, and received elements."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from patience import patience

from evenflow.actors.channels.credit import ChannelLimits
from evenflow.engine.batch import Batch

PATIENCE = patience(30)
LIMITS = ChannelLimits(credit_batches=4, credit_bytes=1 << 20)
TCP = pytest.mark.parametrize("tcp", [False, True], ids=["ipc", "tcp"])


def numbers(first, rows=1):
    return Batch(pa.record_batch({"n": np.arange(first, first + rows)}))


def shown(element):
    return element.rows.column(0)[0].as_py() if isinstance(element, Batch) else element


def until(condition, *transports):
    """Poll the transports until the condition holds; return the received elements."""
    received, deadline = [], time.monotonic() + PATIENCE
    while not condition(received):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain; received {received}"
        for transport in transports:
            received += [(channel, shown(element)) for channel, element in transport.poll(0.01)]
    return received


def receive(transport, count):
    return until(lambda received: len(received) >= count, transport)
