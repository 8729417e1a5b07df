"""An S3 server: moto, a process of its own on a free port; and content packages to put there."""

import io
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import obstore
from obstore.store import S3Store

from tests.support.waiting import until

ACCESS_KEY = "an-access-key"
SECRET_KEY = "a-secret-key-nobody-may-read"
BUCKET = "content"


class S3:
    """A running server with one bucket, `content`."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]") -> None:
        self.url = url
        self._process = process
        self.make_bucket(BUCKET)

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310 (our own process)
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310 (same)
            pass

    def put(self, key: str, data: bytes, *, bucket: str = BUCKET, version: str = "") -> None:
        """Upload an object; `version` goes into its metadata."""
        store = S3Store(
            bucket,
            endpoint=self.url,
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )
        obstore.put(store, key, data, attributes={"version": version} if version else {})

    @property
    def settings(self) -> dict[str, str]:
        """What a provider must be told to use it."""
        return {
            "S3_ENDPOINT": self.url,
            "S3_ACCESS_KEY": ACCESS_KEY,
            "S3_SECRET_KEY": SECRET_KEY,
            "VKPROVIDER_CONTENT_STORE": f"s3://{BUCKET}",
        }

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(timeout=10)


@contextmanager
def s3_server(log: Path, port: int = 0) -> Iterator[S3]:
    """Run a server until the end of the block.

    Args:
        log: What it writes.
        port: 0 takes a free one.
    """
    command = [str(Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    environ = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true", "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(command, stderr=output, stdout=output, env=environ)  # noqa: S603 (a fixed command)
    try:
        said = until(lambda: re.search(r"Running on (http://\S+)", log.read_text()), 60, "moto_server does not start")
        assert said
        yield S3(said[1], process)
    finally:
        process.kill()
        process.wait()


def package(files: Mapping[str, str | bytes], *, stored: bool = False) -> bytes:
    """Make a content package from names and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
