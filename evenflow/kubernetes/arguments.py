"""Arguments of `evenflow k8s`: a function converts each text, or says what was expected.

>>> workers("2:8")
(2, 8)
>>> secret("pg-login").env_from
{'secretRef': {'name': 'pg-login'}}
"""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

PROGRAMS = PurePosixPath("/opt/jobs")
"""The folder of programs in the image, as in the Dockerfile."""

MOST_NAME = 47
"""KubeRay's limit: names of clusters, Services and pods begin with the job's name."""

MOST_RETRIES = 2**31 - 1

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUANTITY = re.compile(r"(\d+(\.\d+)?|\.\d+)(m|[kMGTPE]i?|Ki)?")


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A reference to a Secret: all of its entries become variables (`env_from`), or one entry does (`env`)."""

    env_from: dict[str, Any] | None = None
    env: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A volume of all pods, and where they see it."""

    volume: dict[str, Any]
    mount: dict[str, Any]


def name(text: str) -> str:
    """Check a job's name in Kubernetes."""
    if not _LABEL.fullmatch(text) or len(text) > MOST_NAME:
        raise ArgumentTypeError(f"{text!r}: expected at most {MOST_NAME} small letters, digits and hyphens, with a letter first")
    return text


def name_of(program: str) -> str:
    """Make a name of the program's file.

    >>> name_of("jobs/Click_Counts.py")
    'click-counts'
    """
    found = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(program).stem.lower()).strip("-0123456789")[:MOST_NAME].strip("-")
    return found or "job"


def workers(text: str) -> tuple[int, int]:
    """Convert `LEAST:MOST`, or a number that is both."""
    least, colon, most = text.partition(":")
    try:
        found = int(least), int(most if colon else least)
    except ValueError:
        found = 0, 0
    if not 1 <= found[0] <= found[1]:
        raise ArgumentTypeError(f"{text!r}: expected a number of pods, or the least and the most, such as 2:8; the least is at least 1")
    return found


def checkpoint(text: str) -> str:
    """Check the folder of checkpoints."""
    if not re.match(r"\w+://.", text) and not text.startswith("/"):
        raise ArgumentTypeError(f"{text!r}: expected a URL, such as s3://bucket/folder, or an absolute path on a --volume")
    return text


def quantity(text: str) -> str:
    """Check a number of processors, or an amount of memory."""
    if not _QUANTITY.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: expected a quantity of Kubernetes, such as 2, 500m or 8Gi")
    return text


def port(text: str) -> int:
    """Convert the number of a port."""
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise ArgumentTypeError(f"{text!r}: expected a port from 1 to 65535")
    return int(text)


def retries(text: str) -> int:
    """Convert a number of retries."""
    if not text.isdecimal() or int(text) > MOST_RETRIES:
        raise ArgumentTypeError(f"{text!r}: expected a number from 0 to {MOST_RETRIES}")
    return int(text)


def words(text: str) -> list[str]:
    """Split a command line's arguments as a shell does."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from error


def secret(text: str) -> SecretReference:
    """Convert `NAME`, or `VARIABLE=NAME:KEY`; the Secret's values are never read."""
    variable, equals, source = text.rpartition("=")
    named, colon, key = source.partition(":")
    if not equals and not colon and _SUBDOMAIN.fullmatch(named):
        return SecretReference(env_from={"secretRef": {"name": named}})
    if equals and key and _VARIABLE.fullmatch(variable) and _SUBDOMAIN.fullmatch(named):
        return SecretReference(env={"name": variable, "valueFrom": {"secretKeyRef": {"name": named, "key": key}}})
    raise ArgumentTypeError(f"{text!r}: expected the NAME of a Secret, or VARIABLE=NAME:KEY for one of its entries")


def variable(text: str) -> dict[str, str]:
    """Convert `NAME=VALUE` to a container's variable."""
    found, value = entry(text)
    if not _VARIABLE.fullmatch(found):
        raise ArgumentTypeError(f"{found!r} is no name of a variable")
    return {"name": found, "value": value}


def entry(text: str) -> tuple[str, str]:
    """Convert `NAME=VALUE`."""
    found, equals, value = text.partition("=")
    if not found or not equals:
        raise ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return found, value


def volume(text: str) -> ClaimedVolume:
    """Convert `CLAIM:PATH`: a PersistentVolumeClaim that all pods may write to, and its path in the pods."""
    claim, colon, path = text.partition(":")
    if not colon or not _SUBDOMAIN.fullmatch(claim) or not path.startswith("/"):
        raise ArgumentTypeError(f"{text!r}: expected CLAIM:PATH, such as shared:/shared")
    called = claim.replace(".", "-")
    return ClaimedVolume({"name": called, "persistentVolumeClaim": {"claimName": claim}}, {"name": called, "mountPath": path})


def program_in_image(path: str) -> str:
    """Return the program's path in the image: an absolute path, or one of the folder to which the Dockerfile copies the program.

    >>> program_in_image("jobs/clicks.py"), program_in_image("/app/clicks.py")
    ('/opt/jobs/clicks.py', '/app/clicks.py')
    """
    given = PurePosixPath(path)
    return str(given if given.is_absolute() else PROGRAMS / given.name)
