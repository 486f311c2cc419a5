"""Model files of one time: the same model gives the same bytes."""

import pytest


@pytest.fixture(autouse=True)
def one_time(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
