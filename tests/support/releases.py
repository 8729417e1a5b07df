"""The hosts of Kubernetes' and etcd's releases in a server of the test: files by path, served as it is told."""

import asyncio
import gzip
import hashlib
import io
import platform
import random
import ssl
import tarfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from vkpsandbox.controlplane.build import PROGRAMS, module_files
from vkpsandbox.controlplane.download import architecture_of
from vkpsandbox.controlplane.versions import etcd_version, kubernetes_version

KUBERNETES = kubernetes_version(module_files()[0])
ETCD = etcd_version(module_files()[0])
HERE = architecture_of(platform.system(), platform.machine())
"""The architecture of this machine."""
FILLER_BYTES = 400_000
"""Behind the text of a made-up program, so that it comes in several pieces."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def made_up(program: str, version: str = "") -> bytes:
    """Return a program that only says its version, of a size that is not quite nothing."""
    words = {
        "etcd": f"etcd Version: {(version or ETCD).removeprefix('v')}",
        "kubectl": f"Client Version: {version or KUBERNETES}",
    }
    text = f"#!/bin/sh\necho '{words.get(program, f'Kubernetes {version or KUBERNETES}')}'\nexit\n"
    return text.encode() + random.Random(program).randbytes(FILLER_BYTES)


def path_of(program: str, architecture: str = HERE) -> str:
    """Return where a program, or the archive with it, is published."""
    if program == "etcd":
        return f"/etcd-io/etcd/releases/download/{ETCD}/etcd-{ETCD}-linux-{architecture}.tar.gz"
    return f"/release/{KUBERNETES}/bin/linux/{architecture}/{program}"


SUMS_OF_ETCD = f"/etcd-io/etcd/releases/download/{ETCD}/SHA256SUMS"


def sums_of(program: str, architecture: str = HERE) -> str:
    """Return where the sum of that file is published."""
    return SUMS_OF_ETCD if program == "etcd" else f"{path_of(program, architecture)}.sha256"


def packed(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a `.tar.gz`, the same for the same members; one whose content begins with `->` is a link."""
    whole = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=whole, mode="wb", compresslevel=1, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content.startswith(b"->"):
                entry.type, entry.linkname = tarfile.SYMTYPE, content[2:].decode()
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(content), 0o755
                archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


class Releases:
    """Serves files by their paths, with ranges, until a test says otherwise.

    Attributes:
        url: Where it listens.
        seen: The requests, in order.
        ranges: Whether a part can be asked for.
        files: By path.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._tls = tls
        self._host = host
        self._told: dict[str, list[Handler]] = {}
        self.seen: list[web.Request] = []
        self.ranges = True
        self.files: dict[str, bytes] = {}
        self.url = ""
        self.port = 0

    def publish(self, program: str, content: bytes, architecture: str = HERE) -> None:
        """Publish a program with its sum."""
        name = f"etcd-{ETCD}-linux-{architecture}"
        if program == "etcd":
            content = packed([(f"{name}/README.md", b"etcd"), (f"{name}/etcd", content), (f"{name}/etcdctl", b"x")])
        self.put(program, content, architecture)

    def put(self, program: str, content: bytes, architecture: str = HERE) -> None:
        """Publish a file as it is, with its sum."""
        path = path_of(program, architecture)
        self.files[path] = content
        found = hashlib.sha256(content).hexdigest()
        if program == "etcd":
            rows = [f"{'0' * 64}  etcd-{ETCD}-darwin-amd64.zip", f"{found}  {path.rpartition('/')[2]}", ""]
            self.files[SUMS_OF_ETCD] = "\n".join(rows).encode()
        else:
            self.files[f"{path}.sha256"] = found.encode()

    def publish_all(self, architecture: str = HERE) -> Self:
        """Publish made-up programs."""
        for program in PROGRAMS:
            self.publish(program, made_up(program), architecture)
        return self

    def publish_folder(self, folder: Path) -> None:
        """Publish real ones."""
        for program in PROGRAMS:
            self.publish(program, (folder / program).read_bytes())

    def tell(self, path: str, handler: Handler, times: int = 1) -> None:
        """Answer the next requests for a path with a handler."""
        self._told.setdefault(path, []).extend([handler] * times)

    def asked(self, path: str) -> list[web.Request]:
        """Return the requests for a path."""
        return [request for request in self.seen if request.path == path]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, 0, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http{'s' if self._tls else ''}://{self._host}:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        told = self._told.get(request.path)
        return await (told.pop(0) if told else self.whole)(request)

    async def whole(self, request: web.Request) -> web.StreamResponse:
        """Answer with a file, or with the part of it that is asked for."""
        content = self.files.get(request.path)
        if content is None:
            return web.Response(status=404, text="there is nothing here")
        etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        headers = {"ETag": etag, "Content-Type": "application/octet-stream"}
        span = request.headers.get("Range", "") if self.ranges else ""
        if not span or request.headers.get("If-Range", etag) != etag:
            return web.Response(body=content, headers=headers)
        begin = int(span.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        return web.Response(status=206, body=content[begin:], headers=headers)

    def cut(self, after: int, arrived: Callable[[int], Awaitable[Any]]) -> Handler:
        """Return a handler that sends so many bytes of a file, and hangs up once they have arrived."""

        async def handler(request: web.Request) -> web.StreamResponse:
            content = self.files[request.path]
            etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
            answer = web.StreamResponse(headers={"ETag": etag, "Content-Length": str(len(content))})
            await answer.prepare(request)
            await answer.write(content[:after])
            await arrived(after)
            assert request.transport
            request.transport.close()
            return answer

        return handler


def page(text: str = "<!DOCTYPE html><title>Welcome to Hotel Wi-Fi</title>") -> Handler:
    """Return a handler that answers with a page, and 200."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    return handler


def status(code: int) -> Handler:
    """Return a handler that answers with a status."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=code)

    return handler


def redirect(location: str, code: int = 302) -> Handler:
    """Return a handler that leads elsewhere."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=code, headers={"Location": location})

    return handler


def stall(after: int = 0) -> Handler:
    """Return a handler that sends so many zeros of many, and then nothing."""

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(FILLER_BYTES)})
        await answer.prepare(request)
        await answer.write(bytes(after))
        await asyncio.Event().wait()
        return answer

    return handler
