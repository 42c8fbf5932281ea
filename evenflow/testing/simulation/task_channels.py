"""The channels around one simulated worker, as a port of its task.

Invariant: a channel is an input or an output of records or of state, and keeps its place until the worker at its end leaves.
"""

from __future__ import annotations

from ...engine.batch import Batch
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.elements import Element
from ...engine.protocol.ids import ChannelId, WorkerId, WorkerNumber
from ...engine.protocol.state_channels import state_channel
from ...scheduler.protocol.messages import Announce, Attach, Detach
from .network import Channel, SimulationError


class TaskChannels:
    """The channels of a task, by channel id. `channels` are those of the whole job; with `credit` batches in flight on an output the
    worker waits.
    """

    def __init__(self, spec: TaskSpec, channels: dict[ChannelId, Channel], credit: int, touched: set[str]) -> None:
        self._spec, self._all, self._touched, self._credit = spec, channels, touched, credit
        self.inputs = {id_: channels[id_] for id_ in spec.inputs}
        self.outputs = {id_: channels[id_] for exchange in spec.exchanges for id_ in exchange.channels}
        self.state_inputs: dict[ChannelId, Channel] = {}
        self.state_outputs: dict[ChannelId, Channel] = {}
        self._left: set[WorkerNumber] = set()

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

    def meet(self, command: Announce) -> None:
        """Add the channels for state to and from the workers that a migration names. Raises SimulationError if one of them has left."""
        me, own = self._spec.name, self._spec.number
        for worker, number in command.peers.items():
            if number in self._left:
                raise SimulationError(f"{me} is told to exchange state with {worker}, whose number {number} a worker had that has left")
            self._open(self.state_outputs, (me, own), (worker, number))
            self._open(self.state_inputs, (worker, number), (me, own))

    def _open(
        self, channels: dict[ChannelId, Channel], sender: tuple[WorkerId, WorkerNumber], receiver: tuple[WorkerId, WorkerNumber]
    ) -> None:
        """Add a channel for state; the worker at its other end may have added it before."""
        id_ = state_channel(sender[1], receiver[1])
        channels[id_] = self._all.setdefault(id_, Channel(ChannelSpec(id_, sender[0], receiver[0]), self._touched))

    def detach(self, command: Detach) -> None:
        """Forget the channels to workers that have left."""
        self.outputs = {id_: channel for id_, channel in self.outputs.items() if id_ not in command.outputs}
        self._left.update(command.peers)
        for number in command.peers:
            self.state_outputs.pop(state_channel(self._spec.number, number), None)
