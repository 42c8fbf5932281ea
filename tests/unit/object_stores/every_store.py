"""The mark of a test that runs on each kind of object store."""

from __future__ import annotations

import pytest

every_store = pytest.mark.parametrize(
    "store", ["s3", pytest.param("abfs", marks=pytest.mark.slow), pytest.param("gs", marks=pytest.mark.slow)], indirect=True
)

on_azure = pytest.mark.parametrize("store", ["abfs"], indirect=True)
