"""Processes that have everything imported already: a training in one of its own begins at once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["killed_training", "accelerate", "sonant.training.start"])
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{Path(__file__).parents[1] / 'support'}:{before}"
    yield context
    os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="session")
def s3_bucket():
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("recordings")
        yield "s3://recordings"
    server.stop()


@pytest.fixture(scope="session")
def gs_bucket():
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="recordings")
    server.start()
    port = server._api._httpd.server_address[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield "gs://recordings"
    server.stop()


@pytest.fixture(params=["s3_bucket", "gs_bucket"])
def bucket(request):
    """The address of an empty place in a bucket of an emulator."""
    return f"{request.getfixturevalue(request.param)}/{request.node.name.split('[')[0]}"
