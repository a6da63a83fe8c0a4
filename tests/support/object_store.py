"""A local S3 server for tests, by moto: it speaks the protocol over HTTP, and forgets everything in the end."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import pytest


def s3_settings(port: int) -> dict[str, str]:
    """What clients read in their environment."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@contextmanager
def environment(given: dict[str, str]) -> Iterator[None]:
    """With these variables in the environment of this process and of its children."""
    before = {name: os.environ.get(name) for name in given}
    os.environ |= given
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            os.environ |= {} if value is None else {name: value}


@contextmanager
def s3_server(port: int) -> Iterator[str]:
    """An empty bucket, and an environment that leads clients there; its URL."""
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    with redirect_stdout(StringIO()):
        server.start()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/pools", method="PUT")).close()
    try:
        with environment(s3_settings(port)):
            yield "s3://pools"
    finally:
        server.stop()
        s3fs.S3FileSystem.clear_instance_cache()  # the next server of this process has another port
