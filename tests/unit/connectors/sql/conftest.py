from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start one server for all tests; each test creates its own tables."""
    with postgres_server() as server:
        yield server
