"""Reasons why automatic balancing acts or doesn't act on a window, as fixed sentences, so that equal answers are recognised."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The trigger's judgement of a window. PLANNED is the only one with a plan."""

    EVEN = "the load is even enough"
    FLOOR = "the load is uneven, and no placement of whole keys is much better"
    IDLE = "the hottest worker is not busy enough for a move to matter"
    MOVING = "keys or workers are being moved, so this window belongs to two placements"
    SETTLING = "these figures don't fully show the last plan's moves yet"
    BRIEF = "the load is uneven, but not for long enough"
    CHANCE = "the load is uneven, and with so few records that may be chance"
    COOLING = "the load is uneven, and the last plan is too recent"
    NO_GAIN = "the load is uneven, and no placement is better by enough"
    PLANNED = "a plan was made"
