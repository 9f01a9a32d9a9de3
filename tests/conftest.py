"""Speech made on the spot and buckets of this machine, for tests that must stand without anybody's."""

from __future__ import annotations

import functools
import http.server
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sonant.base.randomness import generator_for

os.environ.setdefault("OMP_NUM_THREADS", "1")


def voiced(seconds: float, sample_rate: int = 16000, *, seed: int = 0, pitch: float = 120.0) -> np.ndarray:
    """A vowel-like sound with syllables and a little breath: float32 (num_samples,), peak about 0.5."""
    rng = generator_for(seed, 0, "voiced")
    time = np.arange(round(seconds * sample_rate)) / sample_rate
    tone = sum(
        np.sin(2 * np.pi * pitch * k * time + rng.uniform(0, 6)) / k
        for k in range(1, 12)
        if pitch * k < sample_rate / 2
    )
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * time + rng.uniform(0, 6))
    sound = tone * syllables + 0.02 * rng.standard_normal(time.size)
    return (0.2 * sound).clip(-0.9, 0.9).astype(np.float32)


@pytest.fixture(scope="session", name="voiced")
def voiced_function() -> Callable[..., np.ndarray]:
    """The function itself: test files are imported one by one and cannot import this file."""
    return voiced


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real recordings and golden numbers; tests that need it are skipped, visibly, without it."""
    folder = Path(os.environ.get("SONANT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"real recordings are not at hand (SONANT_SHARED={folder})")
    return folder


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


class _Whole(http.server.SimpleHTTPRequestHandler):
    """Sends files only whole, as simple servers do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Parts(_Whole):
    """Sends parts of files, as most servers do."""

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not asked or not path.is_file():
            super().do_GET()
            return
        content, first = path.read_bytes(), int(asked[1])
        part = content[first : int(asked[2]) + 1 if asked[2] else None]
        self.send_response(206 if part else 416)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture(params=[_Parts, _Whole], ids=["parts", "whole"])
def web(request, tmp_path):
    """The address of a folder `web` of this test on a web server of this machine."""
    folder = tmp_path / "web"
    folder.mkdir()
    handler = functools.partial(request.param, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
