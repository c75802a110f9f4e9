"""A local server for the tests, which use no other network."""

import pytest

from tests.converters.download.http_server import Server


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with Server() as server:
        yield server
