from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from evenflow.actors.channels.signals import BATCH, BY_CODE, BY_TYPE, KINDS
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError
from evenflow.engine.protocol.elements import (
    MAX_TIME,
    MIN_TIME,
    Barrier,
    Element,
    End,
    FetchReply,
    FetchRequest,
    LatencyMark,
    Marker,
    TransferEnd,
    TransferStart,
    Watermark,
)

EXAMPLES = [
    Watermark(MIN_TIME),
    Watermark(MAX_TIME),
    Watermark(0),
    LatencyMark(1),
    Barrier(3),
    Barrier(3, 2),
    Barrier(3, 2, last=True),
    End(),
    Marker(4),
    TransferStart(4, -7),
    FetchRequest(4, 1),
    FetchReply(4, 1),
    TransferEnd(4),
]


def test_every_element_but_a_batch_has_a_kind():
    assert set(BY_TYPE) == set(get_args(Element)) - {Batch}


def test_no_two_kinds_share_a_code():
    assert len(BY_CODE) == len(KINDS)
    assert BATCH not in BY_CODE


@pytest.mark.parametrize("signal", EXAMPLES, ids=repr)
def test_a_signal_comes_back_from_its_fields(signal):
    kind = BY_TYPE[type(signal)]
    assert kind.from_fields(*kind.to_fields(signal)) == signal


@pytest.mark.parametrize("kind", [k for k in KINDS if k.signal is not End], ids=lambda k: k.signal.__name__)
@pytest.mark.parametrize("field", [None, True, "7", 7.0, -(2**63), 2**64, (7,)], ids=repr)
def test_fields_that_are_no_int64_are_refused(kind, field):
    with pytest.raises(ProtocolError):
        kind.from_fields(*[field] * len(fields(kind.signal)))
