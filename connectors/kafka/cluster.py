"""A Kafka cluster from its clients' point of view: addresses and options, the partitions of topics, and errors that say what to do.

The client library is imported when a Kafka source or sink is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ...engine.errors import ConnectorError, FlowError
from ...engine.secrets import revealed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

C = TypeVar("C")

REPLY_SECONDS = 20.0
"""The longest wait for one response of a broker."""

OWN_OPTIONS = frozenset(
    {
        "bootstrap.servers",
        "metadata.broker.list",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "auto.offset.reset",
        "group.id",
        "isolation.level",
        "transactional.id",
        "enable.idempotence",
        "error_cb",
        "stats_cb",
        "on_delivery",
    }
)
"""Options that a source or sink sets: with other values its guarantees would not hold."""


@dataclass(frozen=True)
class KafkaCluster:
    """The address and the client options of a cluster. `options` are librdkafka's, such as `security.protocol`; keep
    passwords in them out of the program with `ef.secret`.

    `operator` is named in errors. Raises FlowError for an invalid address or option.
    """

    bootstrap: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    operator: str = "kafka"

    def __post_init__(self) -> None:
        if not isinstance(self.bootstrap, str) or not self.bootstrap.strip():
            raise FlowError(f"operator `{self.operator}`: bootstrap is {self.bootstrap!r}; it must be addresses: host:9092,other:9092")
        for name in self.options:
            if name in OWN_OPTIONS:
                raise FlowError(
                    f"operator `{self.operator}`: options={{{name!r}: ...}} can't be set: {self.operator} sets it automatically"
                )

    def consumer(self, **own: Any) -> Consumer:
        """Create a consumer without subscription. `own` are options in Python's spelling: `group_id` for `group.id`."""
        from confluent_kafka import Consumer

        return self._made(Consumer, own)

    def producer(self, **own: Any) -> Producer:
        """Create a producer; `own` as above."""
        from confluent_kafka import Producer

        return self._made(Producer, own)

    def admin(self, **own: Any) -> AdminClient:
        """Create a client that inspects and changes the cluster; `own` as above."""
        from confluent_kafka.admin import AdminClient

        return self._made(AdminClient, own)

    def partitions(self, topics: Sequence[str], seconds: float = REPLY_SECONDS) -> dict[str, list[int]]:
        """List the partitions of each topic, ascending.

        Raises ConnectorError if no broker answers, or if a topic doesn't exist or isn't visible.
        """
        check_installed(self.operator)
        problems = Problems()
        return self.partitions_by(self.admin(error_cb=problems), problems, topics, seconds)

    def partitions_by(self, admin: AdminClient, problems: Problems, topics: Sequence[str], seconds: float) -> dict[str, list[int]]:
        """List partitions as `partitions` does, with an existing client, whose metadata then includes them."""
        from confluent_kafka import KafkaException

        found = {}
        for topic in topics:
            try:
                metadata = admin.list_topics(topic, timeout=seconds).topics[topic]
            except KafkaException as error:
                admin.poll(0)  # calls `problems`
                raise self.error(problems.worst or error.args[0], topic) from error
            if metadata.error is not None:
                raise self.error(metadata.error, f"topic `{topic}`")
            found[topic] = sorted(metadata.partitions)
        return found

    def most_message_bytes(self, topic: str, seconds: float = REPLY_SECONDS) -> int | None:
        """Return the `max.message.bytes` of a topic, or None if the brokers don't report it."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # its stub forgets to export it

        try:
            configs = self.admin().describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)], request_timeout=seconds)
            return int(next(iter(configs.values())).result(seconds)["max.message.bytes"].value)
        except (KafkaException, TimeoutError, KeyError, TypeError, ValueError):
            return None

    def error(self, error: KafkaError, what: str) -> ConnectorError:
        """Convert an error of a broker or the client to one that says what to do; `what` names the topic and any detail."""
        return ConnectorError(f"operator `{self.operator}`: {what}: {_explained(error, self.bootstrap)}")

    def _made(self, client: Callable[[dict[str, Any]], C], own: Mapping[str, Any]) -> C:
        """Create a client. Raises FlowError for an option that the library doesn't know, or a value that it rejects."""
        from confluent_kafka import KafkaException

        try:
            return client(self._config(**own))
        except KafkaException as error:
            raise FlowError(f"operator `{self.operator}`: options: {error.args[0].str()}") from error

    def _config(self, **own: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": revealed(self.bootstrap),
            "log_level": 0,  # what it would log on stderr comes as errors
            "allow.auto.create.topics": False,
            **revealed(self.options),
            **{name if name.endswith("_cb") or name.startswith("on_") else name.replace("_", "."): value for name, value in own.items()},
        }


class Problems:
    """A callback for problems that a client tries to solve itself, such as an unreachable broker.

    It must not call any other function: an error of another callback may be pending, and CPython then treats every call as failed.
    """

    def __init__(self) -> None:
        self._met: tuple[KafkaError, ...] = ()

    def __call__(self, error: KafkaError) -> None:
        self._met = (*self._met[-99:], error)

    def taken(self) -> tuple[KafkaError, ...]:
        """Return the problems since the last call. Called by the thread on which the client's callbacks run."""
        met, self._met = self._met, ()
        return met

    @property
    def worst(self) -> KafkaError | None:
        """The most informative problem; None if there was none."""
        telling = (error for error in self._met if error.name() not in {"_ALL_BROKERS_DOWN", "_TRANSPORT"})
        return next(telling, self._met[0] if self._met else None)


def check_installed(operator: str) -> None:
    """Raise FlowError if the client library is missing."""
    try:
        import confluent_kafka  # noqa: F401 -- whether it can be imported is the question
    except ImportError as error:
        raise FlowError(f"operator `{operator}`: Kafka needs the package confluent-kafka: pip install 'evenflow[kafka]'") from error


_FENCED = "another producer has the same transactional id: another job of this name runs, or this process was considered lost"


def _explained(error: KafkaError, bootstrap: str) -> str:
    if "Invalid response size" in error.str():
        other = f"the server at {bootstrap} doesn't speak Kafka's protocol, or requires TLS; check the address and security.protocol"
        return f"{other}. If a broker's answer is too large, give options={{'receive.message.max.bytes': ...}} ({error.str()})"
    silent = f"no broker answers at {bootstrap}; check the address, that a broker listens there, and that it expects this security.protocol"
    advice = {
        "_TRANSPORT": silent,
        "_ALL_BROKERS_DOWN": silent,
        "_RESOLVE": f"the name in {bootstrap} can't be resolved; check the address",
        "_TIMED_OUT": f"no broker at {bootstrap} answered in time; check the address, the network, and whether the broker expects TLS",
        "_SSL": "TLS was refused; check security.protocol and the ssl.* options",
        "_AUTHENTICATION": "the broker refused the user or password; check the sasl.* options",
        "SASL_AUTHENTICATION_FAILED": "the broker refused the user or password; check the sasl.* options",
        "UNKNOWN_TOPIC_OR_PART": "there is no such topic or partition; create it, or check the name",
        "_UNKNOWN_TOPIC": "there is no such topic; create it, or check the name",
        "_UNKNOWN_PARTITION": "there is no such partition",
        "TOPIC_AUTHORIZATION_FAILED": "the user has no right to this topic; ask for it, or check the sasl.* options",
        "GROUP_AUTHORIZATION_FAILED": "the user has no right to this group.id; ask for it, or choose another",
        "_MSG_TIMED_OUT": f"no broker at {bootstrap} accepted it in time; check that brokers run, and that all partitions have leaders",
        "_FENCED": _FENCED,
        "PRODUCER_FENCED": _FENCED,
        "INVALID_PRODUCER_EPOCH": "another producer has the same transactional id, or a transaction exceeded transaction.timeout.ms",
        "MSG_SIZE_TOO_LARGE": "a message is too large; raise the topic's max.message.bytes, and options={'message.max.bytes': ...}",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "the user has no right to this transactional.id; ask for it (prefix `evenflow-`)",
    }.get(error.name())
    return f"{advice} ({error.str()})" if advice else error.str()
