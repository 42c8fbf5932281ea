"""What a source is to the engine: a description on the driver, and one reader in each source worker.

The driver calls `Source.start` once before the workers start and `Source.stop` once at the end. Each worker calls
`Source.reader(index, parallelism)` once, and then `SourceReader.poll` whenever its output has room. A reader must give the
same records in the same order when it is made again and sought to a position that it reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .batch import Batch
from .errors import FlowError
from .protocol.elements import MAX_TIME, MIN_TIME


class Source(ABC):
    """Where records come from. Plain picklable configuration: it is sent to every worker that reads it."""

    name: str
    """The default name of the operator that reads it, for example `read_parquet`."""

    guarantee: str = "exactly once (seeks to the checkpointed position)"
    """What it promises when a job recovers; printed by `explain()`."""

    parallelism: int | None = None
    """The only parallelism that it can run with, or None for any."""

    rate: float | None = None
    """The records per second that come from outside to all readers together, read or not; None where it isn't known."""

    driver_part: str | None = None
    """What of it runs in the process that starts the job as long as the job does; None if nothing does."""

    def start(self) -> None:
        """Called once on the driver before any worker starts: check the input, start a Spark query.

        Raises ConnectorError where the input can't be read: a missing file or column, a wrong type. Must not wait for data.
        """

    def stop(self) -> None:
        """Called once on the driver when the job has ended, however it ended. Must not raise."""

    def failure(self) -> str | None:
        """Asked now and then on the driver while the job runs: what went wrong outside the workers, or None."""
        return None

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        """Positions for `parallelism` readers that together go on where the readers at `positions` were, of any number to any number.

        `positions` are those of all readers, at one time. Asked on the driver, when a job is restored with another parallelism or the
        source is scaled as it runs; `start` need not have been called. Pure. However it is shared out, polled and sought in turn, no
        record is given twice or never. Readers made with the new index and parallelism are sought to the result.

        Raises FlowError if the source can't be shared out anew, or `positions` are not those of all its readers.
        """
        if len(positions) == parallelism:
            return list(positions)
        raise FlowError(
            f"source `{self.name}` can't go on with {parallelism} workers: it had {len(positions)}, and can't be shared out anew"
        )

    @property
    def can_be_shared_out(self) -> bool:
        """Whether `share_out` goes from one number of readers to another."""
        return type(self).share_out is not Source.share_out

    def earliest(self, position: Any) -> int:
        """A lower bound (microseconds) of the event times that a reader at `position`, also a shared-out one, has yet to give.

        `MAX_TIME` without event time or if nothing is left, `MIN_TIME` if it isn't known. The smallest over shared-out positions is the
        smallest over those that they were made from. Pure, and from the position alone.
        """
        return MIN_TIME

    @abstractmethod
    def reader(self, index: int, parallelism: int) -> SourceReader:
        """The reader of worker `index` of `parallelism`; together they give every record exactly once."""


class SourceReader(ABC):
    """One worker's share of a source. Used by one thread."""

    @abstractmethod
    def poll(self, max_rows: int) -> Batch | None:
        """The next batch of at most about `max_rows` rows, or None when nothing is ready now.

        It may take as long as decoding the batch takes, but must not wait for data that isn't there. Event times are set
        if the source has an event time. Raises ConnectorError naming the file and what is wrong with it.
        """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True once nothing will ever come again. Only ever goes from False to True."""

    def watermark(self) -> int:
        """A lower bound (microseconds) of the event times of all records that `poll` has yet to give.

        Asked after each poll. It may stay, never fall. `MAX_TIME` means no claim is needed (a stream without event time).
        """
        return MAX_TIME

    @abstractmethod
    def position(self) -> Any:
        """Where the next poll goes on, as a msgpack-able value. Asked between polls."""

    @abstractmethod
    def seek(self, position: Any) -> None:
        """Go on from a position that an earlier reader of this index and parallelism reported, or that `Source.share_out` made for it.

        Called before the first poll. The watermark is then a lower bound of all that follows, maybe lower than one of an earlier reader.
        """

    def backlog(self) -> int | None:
        """Rows that are there and that it has not given, None if that isn't known. Asked between polls, every second or so."""
        return None

    def ready_in(self) -> float:
        """Seconds after which a poll may give something, when the last one gave None: how long the worker may sleep."""
        return 0.01

    def close(self) -> None:
        """Called once when the worker ends. Must not raise."""
