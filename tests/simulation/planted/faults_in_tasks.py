"""Faults in tasks: in event time, alignment, outputs, hand-overs, keyed state and checkpoints. Each breaks a core in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unsettled import do_not_settle_in

from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.kinds import records
from evenflow.engine.keyed_state.kinds.join_rows import JoinRows
from evenflow.engine.keyed_state.kinds.records import StateRecords
from evenflow.engine.keyed_state.kinds.timers import Timers
from evenflow.engine.keys.encoding import key_values
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindowsInstance
from evenflow.engine.operators.processing.process import ProcessInstance
from evenflow.engine.operators.rows.map_gathered import MapGatheredInstance
from evenflow.engine.protocol.elements import MAX_TIME, Marker, Watermark
from evenflow.engine.protocol.restored_keys import RestoredKeys
from evenflow.engine.protocol.routing import Move
from evenflow.engine.task import core, handover
from evenflow.engine.task.alignment import Alignment
from evenflow.engine.task.core import TaskCore
from evenflow.engine.task.exchange import Exchange
from evenflow.engine.task.handover import Handovers
from evenflow.engine.task.hash_exchange import HashExchange
from evenflow.engine.task.saving import Saving
from evenflow.engine.task.task_checkpoints import TaskCheckpoints
from evenflow.engine.task.task_event_time import TaskEventTime

Patch = pytest.MonkeyPatch


def watermark_overtakes_rows_that_wait_for_a_full_batch(patch: Patch) -> None:
    patch.setattr(MapGatheredInstance, "watermark", property(lambda self: self._input_watermark))


def barrier_overtakes_rows_that_wait_for_a_full_batch(patch: Patch) -> None:
    do_not_settle_in(patch, "_pass_barrier")


def keys_move_before_their_rows_that_wait_for_a_full_batch(patch: Patch) -> None:
    do_not_settle_in(patch, "_pass_handover")


def marker_is_not_sent_to_one_worker(patch: Patch) -> None:
    switch = HashExchange.switch

    def without_last_marker(self: Any, step: Any, out: list[Any]) -> None:
        switch(self, step, out)
        del out[max(i for i, sent in enumerate(out) if isinstance(sent.element, Marker))]

    patch.setattr(HashExchange, "switch", without_last_marker)


def marker_overtakes_the_rows_before_it(patch: Patch) -> None:
    switch = HashExchange.switch

    def markers_first(self: Any, step: Any, out: list[Any]) -> None:
        own: list[Any] = []
        switch(self, step, own)
        out += sorted(own, key=lambda sent: not isinstance(sent.element, Marker))

    patch.setattr(HashExchange, "switch", markers_first)


def copy_has_rows_from_behind_the_markers(patch: Patch) -> None:
    split = Handovers._split

    def without_waiting(self: Any, batch: Batch, *, behind: bool) -> Batch | None:
        outgoing, self._outgoing = self._outgoing, []
        try:
            return split(self, batch, behind=behind)
        finally:
            self._outgoing = outgoing

    patch.setattr(Handovers, "_split", without_waiting)


def dealt_rows_come_home_after_rows_from_behind_the_markers(patch: Patch) -> None:
    split = Handovers._split

    def without_waiting(self: Any, batch: Batch, *, behind: bool) -> Batch | None:
        returns = any(incoming.move.returns for incoming in self._incoming.values())
        return split(self, batch, behind=behind and not returns)

    patch.setattr(Handovers, "_split", without_waiting)


def rows_from_before_the_markers_wait_for_dealt_rows(patch: Patch) -> None:
    split = Handovers._split
    patch.setattr(Handovers, "_split", lambda self, batch, *, behind: split(self, batch, behind=True))


def copied_rows_are_given_back_too(patch: Patch) -> None:
    depart = JoinRows.depart

    def with_copies(self: Any, move: Move) -> Any:
        return depart(self, replace(move, keys=(*move.keys, *(key for key, _ in move.returns)), returns=()))

    patch.setattr(JoinRows, "depart", with_copies)


def copied_rows_of_all_workers_are_restored(patch: Patch) -> None:
    of = RestoredKeys.of
    patch.setattr(RestoredKeys, "of", lambda self, *rows: of(replace(self, before=None), *rows))


def record_set_aside_is_lost(patch: Patch) -> None:
    joined = handover.joined
    patch.setattr(handover, "joined", lambda batches: joined(list(batches)[1:]))


def record_overtakes_those_that_were_set_aside(patch: Patch) -> None:
    split = Handovers._split

    def without_ended(self: Any, batch: Batch, *, behind: bool) -> Batch | None:
        incoming = self._incoming
        self._incoming = {source: one for source, one in incoming.items() if not one.ended}
        try:
            return split(self, batch, behind=behind)
        finally:
            self._incoming = incoming

    patch.setattr(Handovers, "_split", without_ended)


def step_is_over_before_the_records_that_were_set_aside_are_processed(patch: Patch) -> None:
    replay = Handovers.replay

    def at_once(self: Any, rows: int) -> Any:
        batches, arrived = replay(self, rows)
        source = next((source for source, incoming in self._incoming.items() if incoming.ended), None)
        return batches, arrived if arrived is not None or source is None else self._over(source)

    patch.setattr(Handovers, "replay", at_once)
    patch.setattr(core, "REPLAYED", 1)


def records_of_a_requested_key_are_overtaken(patch: Patch) -> None:
    install = Handovers._install

    def all_here(self: Any, source: int, state: Batch) -> None:
        install(self, source, state)
        if self._operator.state.whole_keys:
            self._incoming[source].here |= set(key_values(self._operator.key_columns(state.rows)))

    patch.setattr(Handovers, "_install", all_here)


def state_given_away_is_kept(patch: Patch) -> None:
    give = Handovers._give

    def keep(self: Any, outgoing: Any, *, everything: bool) -> bool:
        before = len(self._out)
        done = give(self, outgoing, everything=everything)
        for sent in self._out[before:]:
            if isinstance(sent.element, Batch):
                self._operator.state.install(sent.element)
        return done

    patch.setattr(Handovers, "_give", keep)


def key_is_left_out_of_the_state_given_away(patch: Patch) -> None:
    install = Handovers._install

    def without_last(self: Any, source: int, state: Batch) -> None:
        install(self, source, state.slice(0, max(1, state.num_rows - 1)))

    patch.setattr(Handovers, "_install", without_last)


def records_of_moving_keys_are_not_set_aside(patch: Patch) -> None:
    patch.setattr(Handovers, "split", lambda self, batch: batch)


def input_is_not_frozen_at_its_marker(patch: Patch) -> None:
    patch.setattr(TaskEventTime, "freeze", lambda self, channel: None)


def watermark_of_the_fastest_input_counts(patch: Patch) -> None:
    patch.setattr(TaskEventTime, "over_channels", property(lambda self: max([*self.channels.values(), *self._frozen.values()])))


def watermark_leaves_before_the_rows_that_wait(patch: Patch) -> None:
    flush = Exchange.flush

    def watermark_first(self: Any, out: list[Any]) -> None:
        own: list[Any] = []
        flush(self, own)
        out += sorted(own, key=lambda sent: not isinstance(sent.element, Watermark))

    patch.setattr(Exchange, "flush", watermark_first)


def event_time_goes_on_while_inputs_are_to_tell_theirs_anew(patch: Patch) -> None:
    expect = TaskEventTime.expect

    def without_waiting(self: Any, channels: Any) -> None:
        expect(self, ())

    patch.setattr(TaskEventTime, "expect", without_waiting)


def barrier_is_not_awaited_on_one_channel(patch: Patch) -> None:
    patch.setattr(Alignment, "complete", lambda self, inputs: self._barrier if len(set(inputs) - self.channels) <= 1 else None)


def elements_behind_a_barrier_are_not_held_back(patch: Patch) -> None:
    arrive = Alignment.arrive

    def without_holding(self: Any, channel: int, barrier: Any) -> None:
        arrive(self, channel, barrier)
        self.arrived = getattr(self, "arrived", set()) | {channel}
        self.channels.clear()

    def complete(self: Any, inputs: Any) -> Any:
        if not getattr(self, "arrived", set()).issuperset(inputs):
            return None
        self.arrived = set()
        return self._barrier

    patch.setattr(Alignment, "arrive", without_holding)
    patch.setattr(Alignment, "complete", complete)


def alignment_releases_in_the_wrong_order(patch: Patch) -> None:
    release = Alignment.release
    patch.setattr(Alignment, "release", lambda self: release(self)[::-1])


def row_in_a_buffer_is_dropped_at_a_rewind(patch: Patch) -> None:
    rewind = Exchange.rewind

    def dropping(self: Any, time: int, out: list[Any]) -> None:
        if isinstance(self, HashExchange):
            self._route(out)
        for buffer in self.buffers:
            buffer.batches, buffer.rows = buffer.batches[1:], 0
        rewind(self, time, out)

    patch.setattr(Exchange, "rewind", dropping)


def delta_forgets_a_key(patch: Patch) -> None:
    take = Saving.next

    def without_last(self: Any) -> Batch | None:
        chunk = take(self)
        return chunk.slice(0, chunk.num_rows - 1) if chunk is not None and self.prepared.base else chunk

    patch.setattr(Saving, "next", without_last)


def checkpoint_is_prepared_before_the_last_chunk(patch: Patch) -> None:
    def next_(self: Any) -> Any:
        if self._saving is None:
            return None
        prepared, self._saving = self._saving.prepared, None
        return prepared

    patch.setattr(TaskCheckpoints, "next", next_)


def keys_of_other_workers_are_restored_too(patch: Patch) -> None:
    def install(self: Any, chunk: Batch, keys: Any, saved_by: int) -> None:
        self.chain.keyed.state.restore(chunk, self.spec.name)

    patch.setattr(TaskCore, "install", install)


def event_time_is_not_restored(patch: Patch) -> None:
    patch.setattr(TaskCore, "restore", lambda self, *restored: None)


def timer_fires_twice(patch: Patch) -> None:
    fire = ProcessInstance._fire

    def twice(self: Any, domain: Any, states: Any, at: int, key: Any, emit: Any) -> bool:
        stood = key in states and at in states[key].timers
        forgotten = fire(self, domain, states, at, key, emit)
        if stood and key in states:
            states[key].timers.add(at)
            forgotten += fire(self, domain, states, at, key, emit)
        return bool(forgotten)

    patch.setattr(ProcessInstance, "_fire", twice)


def processing_timer_is_lost_in_a_move(patch: Patch) -> None:
    install = StateRecords.install

    def without_processing_timers(self: Any, chunk: Batch) -> None:
        before, self.processing_timers = self.processing_timers, Timers()
        install(self, chunk)
        self.processing_timers = before

    patch.setattr(StateRecords, "install", without_processing_timers)


def processing_timer_is_not_saved(patch: Patch) -> None:
    unpack = records.unpack_records

    def without_processing_timers(packed: Any) -> Any:
        return [replace(record, processing_timers={}) for record in unpack(packed)]

    patch.setattr(records, "unpack_records", without_processing_timers)


def processing_timer_fires_early(patch: Patch) -> None:
    fire_due = ProcessInstance._fire_due

    def early(self: Any, domain: Any, until: int, emit: Any, fired: Any = None) -> None:
        fire_due(self, domain, min(until + 500_000, MAX_TIME) if domain == "processing" else until, emit, fired)

    patch.setattr(ProcessInstance, "_fire_due", early)


def late_row_is_counted_twice(patch: Patch) -> None:
    late = AggregateWindowsInstance._late

    def twice(self: Any, batch: Any, partial: Any, codes: Any, rows: Any, emit: Any) -> None:
        late(self, batch, partial, codes, rows, emit)
        late(self, batch, partial, codes, rows, emit)

    patch.setattr(AggregateWindowsInstance, "_late", twice)
