from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka_broker import kafka_broker


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Start one broker for all tests; each test creates its own topics."""
    with kafka_broker() as address:
        yield address
