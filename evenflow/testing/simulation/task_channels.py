"""The channels around one simulated worker, as a port of its task.

Invariant: a channel is an input or an output of records or of state, and keeps its place until the worker at its end leaves.
"""

from __future__ import annotations

from ...engine.batch import Batch
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.elements import Element
from ...engine.protocol.ids import ChannelId
from ...scheduler.protocol.messages import Attach, Detach
from .network import Channel


class TaskChannels:
    """The channels of a task, by channel id. `channels` are those of the whole job; with `credit` batches in flight on an output the
    worker waits.
    """

    def __init__(self, spec: TaskSpec, channels: dict[ChannelId, Channel], credit: int, touched: set[str]) -> None:
        self._all, self._touched, self._credit = channels, touched, credit
        self.inputs = {id_: channels[id_] for id_ in spec.inputs}
        self.outputs = {id_: channels[id_] for exchange in spec.exchanges for id_ in exchange.channels}
        self.state_inputs = {peer.incoming: channels[peer.incoming] for peer in spec.peers}
        self.state_outputs = {peer.outgoing: channels[peer.outgoing] for peer in spec.peers}
        self._to_peers = {peer.index: peer.outgoing for peer in spec.peers}

    def send(self, channel: ChannelId, element: Element) -> None:
        (self.outputs.get(channel) or self.state_outputs[channel]).send(element)

    def consumed(self, channel: ChannelId, batch: Batch) -> None:
        (self.inputs.get(channel) or self.state_inputs[channel]).consumed()

    @property
    def have_credit(self) -> bool:
        """True if every output has credit for a batch."""
        credit = self._credit
        for outputs in (self.outputs, self.state_outputs):
            for channel in outputs.values():
                if channel.batches >= credit:
                    return False
        return True

    @property
    def full(self) -> list[Channel]:
        """The outputs of records on which the worker waits for credit."""
        return [channel for channel in self.outputs.values() if channel.batches >= self._credit]

    def attach(self, command: Attach) -> None:
        """Add the channels from and to joining workers."""
        channels = self._all
        for spec in (*command.accept, *command.connect):
            channels.setdefault(spec.id, Channel(spec, self._touched))
        self.inputs.update((id_, channels[id_]) for id_, _ in command.inputs)
        self.outputs.update((id_, channels[id_]) for *_, id_ in command.outputs)
        self.state_inputs.update((peer.incoming, channels[peer.incoming]) for peer in command.peers)
        self.state_outputs.update((peer.outgoing, channels[peer.outgoing]) for peer in command.peers)
        self._to_peers.update((peer.index, peer.outgoing) for peer in command.peers)

    def detach(self, command: Detach) -> None:
        """Forget the channels to workers that have left."""
        self.outputs = {id_: channel for id_, channel in self.outputs.items() if id_ not in command.outputs}
        for index in command.peers:
            self.state_outputs.pop(self._to_peers.pop(index, ChannelId(-1)), None)
