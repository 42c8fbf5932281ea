"""Decides when a task polls its source and how much of its time goes to state: pure rules; callers pass the time in seconds.

Invariant: of any stretch of time in which state is given away or made for a checkpoint, records keep at least the remaining share.
"""

from __future__ import annotations

import math

FEW = 8
"""A source that has returned fewer rows when it has no more for now rests for the job's linger, so that more arrive at once: taking
rows one by one costs a core's time for a few thousand a second, in this worker and in every worker downstream."""

CROWDED = 0.15
"""The share of its time that a source's thread waits for a processor, above which its rows gather for longer and longer, up to the linger.
Workers that share too few processors spend them on small batches otherwise: two sources and two counts on two cores took 1.8 of them for
20,000 rows a second."""

LOOK = 0.05
"""Seconds between two looks at that share. It may rise for a look or two by chance."""

MORE, LESS = 1 / 4, 1 / 16
"""The parts of the linger by which rows gather for longer, or less long, after each look."""

IDLE = 0.1
"""Seconds that a worker without a source may sleep: input wakes it earlier."""

SAVING = 0.001
"""Seconds that a worker sleeps at least while chunks of state wait to be written."""

SAVE_SECONDS = 0.003
"""Seconds for which a worker makes chunks of state at a time, between two batches, which may take much longer."""

SAVE_SHARE, SAVE_SOON, SAVE_LONG, SAVE_ALONE = 0.15, 3.0, 1 / 3, 3 / 4
"""The largest share of its time that a worker spends on chunks of state for a checkpoint, for the first `SAVE_SOON` seconds. Writing them
takes a processor too, and records wait meanwhile. After that time the share is `SAVE_LONG`, and `SAVE_ALONE` while no records wait: what
arrives during a checkpoint is replayed after a failure, so a large one must end."""

SAVE_LATE = 0.01
"""Seconds by which chunks may be late, because records were processed, without a loss of their share."""

GIVE_SHARE = 1 / 8
"""The largest share of its time that a worker spends on giving state away for which no records wait: the worker that takes the state has
as much work with it, before its own records, and would fall behind. A worker that takes state step by step rests between two steps for as
long as this share asks for."""

INSTALL_SHARE, INSTALL_BEHIND = 1 / 3, 1 / 20
"""The largest share of its time that a worker spends on installing restored state in the background, and while records wait: those need
their own state first, and after a failure many wait."""


class Pacing:
    """The pace of one task. `linger` and `latency_interval`: seconds; None sends no latency marks but those that are asked for."""

    def __init__(self, linger: float, latency_interval: float | None = None) -> None:
        self._linger, self._latency_interval = linger, latency_interval
        self._next_mark = 0.0
        self._gather_until, self._rows_at_once = 0.0, 0
        self._rest = 0.0
        """Seconds for which rows gather because processors are short."""
        self._looked, self._starved = -math.inf, 0.0
        self._give_at = self._save_at = 0.0
        self._take_began = self._taken_for = 0.0
        self._install_ended, self._install_took = -math.inf, 0.0
        self._saving_since = math.inf

    def set_linger(self, linger: float, now: float) -> None:
        """Let few rows gather for `linger` seconds, at most, from now on."""
        self._linger = linger
        self._rest = min(self._rest, linger)
        self._gather_until = min(self._gather_until, now + linger)

    def may_poll(self, now: float) -> bool:
        """True unless few rows gather in the source."""
        return now >= self._gather_until

    def mark_due(self, now: float) -> bool:
        """True if a latency mark is due."""
        return self._latency_interval is not None and now >= self._next_mark

    def polled(self, rows: int, now: float, *, marked: bool) -> None:
        """Note a poll that returned `rows` rows, behind a latency mark if `marked`."""
        if marked and rows and self._latency_interval is not None:
            self._next_mark = now + self._latency_interval
        if not rows and self._rows_at_once:
            self._gather_until = now + (self._linger if self._rows_at_once < FEW else self._rest)
        self._rows_at_once = self._rows_at_once + rows if rows else 0

    def look_due(self, now: float) -> bool:
        """True if it is time to look at how long the thread has waited for a processor."""
        return now >= self._looked + LOOK

    def looked(self, starved: float, now: float) -> None:
        """Note the seconds that the thread has waited for a processor so far."""
        share = (starved - self._starved) / (now - self._looked)
        self._starved, self._looked = starved, now
        self._rest = min(self._linger, self._rest + MORE * self._linger) if share > CROWDED else max(0.0, self._rest - LESS * self._linger)

    def may_give(self, now: float) -> bool:
        """True if a chunk of state for which no records wait may be given away."""
        return now >= self._give_at

    def gave(self, begun: float, now: float) -> None:
        """Note a chunk that was given away."""
        self._give_at = now + (now - begun) * (1 / GIVE_SHARE - 1)

    def took(self, began: float, now: float) -> None:
        """Note that state was taken which another worker sent."""
        if not self._taken_for:
            self._take_began = began
        self._taken_for += now - began

    def rested_at(self) -> float:
        """Return when the state of a step, which has all been taken, has cost no more than its share of the time since it began."""
        taken_for, self._taken_for = self._taken_for, 0.0
        return self._take_began + taken_for / GIVE_SHARE

    def may_install(self, now: float, *, behind: bool) -> bool:
        """True if a slice of restored state may be installed. `behind`: records wait."""
        return now >= self._install_at(INSTALL_BEHIND if behind else INSTALL_SHARE)

    def installed(self, begun: float, now: float) -> None:
        """Note a slice that was installed."""
        self._install_ended, self._install_took = now, now - begun

    def may_save(self, now: float) -> bool:
        """True if chunks of state may be made for a checkpoint."""
        return now >= self._save_at

    def saved(self, begun: float, now: float, *, behind: bool) -> None:
        """Note the time in which chunks were made. `behind`: records waited."""
        self._saving_since = min(self._saving_since, begun)
        share = SAVE_SHARE if now < self._saving_since + SAVE_SOON else SAVE_LONG if behind else SAVE_ALONE
        self._save_at = max(self._save_at, begun - SAVE_LATE) + (now - begun) / share

    def nothing_to_save(self) -> None:
        """Note that no state waits for a checkpoint."""
        self._saving_since = math.inf

    def sleep_for(self, now: float, ready_in: float | None, *, giving: bool, installing: bool, saving: bool) -> float:
        """Return the seconds until there may be work. `ready_in`: seconds until the source may have rows, None without a source."""
        until = IDLE if ready_in is None else max(ready_in, self._gather_until - now)
        if giving:
            until = min(until, max(0.0, self._give_at - now))
        if installing:
            until = min(until, max(0.0, self._install_at(INSTALL_SHARE) - now))
        return min(until, max(SAVING, self._save_at - now)) if saving else until

    def _install_at(self, share: float) -> float:
        """Return when installation has taken this share of the time since the last slice began."""
        return self._install_ended + self._install_took * (1 / share - 1)
