"""The keys of a job: only a process that has them may connect to its workers.

>>> security = Security.generate()
>>> any(secret.decode() in repr(security) for secret in (security.server_secret, security.client_secret, security.password))
False
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import zmq


@dataclass(frozen=True, slots=True)
class Security:
    """A job's name on its machines and its CURVE key pairs (Z85 text, 40 bytes each), created once and passed to its workers over
    Ray.

    All workers share the pairs: the server pair proves to a sender that it reached its job, the client pair proves to a receiver
    that the sender belongs to its job. Within a node the `password` proves the latter, and the folder of the sockets proves the
    former.
    """

    job: str
    server_public: bytes
    server_secret: bytes = field(repr=False)
    client_public: bytes
    client_secret: bytes = field(repr=False)
    password: bytes = field(repr=False)

    @classmethod
    def generate(cls, job: str | None = None) -> Security:
        """Create fresh keys for the run `job`, by default one with a random name."""
        password = secrets.token_hex(32).encode()
        return cls(job if job is not None else secrets.token_hex(8), *zmq.curve_keypair(), *zmq.curve_keypair(), password)
