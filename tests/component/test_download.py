"""`--download`: official programs of the pinned versions, from a server of the test that plays their hosts."""

import asyncio
import os
import re
import signal
import ssl
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trustme
from aiohttp import web
from click.testing import CliRunner

from tests.support.apiserver import until
from tests.support.connectproxy import ConnectProxy
from tests.support.releases import (
    ETCD,
    FILLER_BYTES,
    HERE,
    KUBERNETES,
    SUMS_OF_ETCD,
    Releases,
    made_up,
    packed,
    page,
    path_of,
    redirect,
    stall,
    status,
    sums_of,
)
from vkpsandbox import SandboxError
from vkpsandbox.commands.sandbox import up
from vkpsandbox.controlplane import build, download, fetch
from vkpsandbox.controlplane.build import BIN_VARIABLE, PROGRAMS, ensure_programs
from vkpsandbox.controlplane.download import MIRROR_VARIABLE, SUMS_VARIABLE

ROOT = Path(__file__).parents[2]
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
KUBECTL, ETCD_ARCHIVE = path_of("kubectl"), path_of("etcd")


@pytest.fixture
async def hosts() -> AsyncIterator[Releases]:
    async with Releases() as server:
        yield server.publish_all()


class Machine:
    """A machine whose cache of programs is empty, and what is said on it.

    Attributes:
        lines: The progress.
        built: Whether a Go has built anything.
    """

    def __init__(self, home: Path) -> None:
        self.cache = home / "cache" / "vkprovider" / "controlplane"
        self.lines: list[str] = []
        self._calls = home / "calls"

    @property
    def target(self) -> Path:
        return self.cache / build.control_plane().target.name

    @property
    def built(self) -> bool:
        return self._calls.exists()

    def left(self) -> list[str]:
        """List what is in the cache, but for the lock."""
        return sorted(path.name for path in self.cache.glob("*") if path.suffix != ".lock")

    def arriving(self, file: str) -> int:
        """Return how many bytes of a file that is on its way have been written."""
        return sum(path.stat().st_size for path in self.cache.glob(f"new-*/downloaded/{file}"))

    async def arrived(self, file: str, count: int) -> None:
        async def look() -> bool:
            return self.arriving(file) >= count

        await until(look)

    async def download(self) -> Path:
        """Ask for the programs, in a thread as a command does."""
        return await asyncio.to_thread(ensure_programs, self.lines.append, by_download=True)

    async def refused(self) -> str:
        """Return why there are no programs; nothing is kept then, and nothing built."""
        with pytest.raises(SandboxError) as stopped:
            await self.download()
        assert self.left() == []
        assert not self.built
        assert "\n" not in str(stopped.value)
        return str(stopped.value)


GO = """#!/bin/sh
echo go version go1.26.0
[ "$1" = build ] || exit 0
echo build >> {calls}
while [ $# -gt 0 ]; do [ "$1" = -o ] && mkdir -p "${{2%/*}}" && : > "$2"; shift; done
"""


@pytest.fixture
def machine(hosts: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a Go that builds at once, where mirrors lead to the hosts of the test."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO.format(calls=tmp_path / "calls"))
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(MIRROR_VARIABLE, hosts.url)
    monkeypatch.setenv(SUMS_VARIABLE, f"{hosts.url}/")
    for variable in (BIN_VARIABLE, *PROXIES, *map(str.lower, PROXIES), "SSL_CERT_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(fetch, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(fetch, "DELAY_S_MAX", 0.02)
    return Machine(tmp_path)


def complete(folder: Path) -> bool:
    """Tell whether a folder has the programs of the hosts, and nothing else."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} == {name: made_up(name) for name in PROGRAMS}


async def test_programs_are_downloaded_once_and_kept_where_built_ones_are(hosts: Releases, machine: Machine) -> None:
    made = await machine.download()
    assert made == machine.target
    assert complete(made)
    assert all(os.access(made / program, os.X_OK) for program in PROGRAMS)
    assert not machine.built
    first, *each, last = machine.lines
    assert first == f"downloading the control plane {KUBERNETES} and etcd {ETCD} from 127.0.0.1: once"
    assert sorted(re.sub(r"[\d.]+ MB after \d+ s", "N", line) for line in each) == sorted(
        f"  {line.split()[0]} ({number} of 5) downloaded: N" for number, line in enumerate(each, 1)
    )
    assert last == "  all have their sums, and say their versions"
    asked = len(hosts.seen)
    assert asked == 2 * len(PROGRAMS)
    assert await machine.download() == made
    assert ensure_programs(machine.lines.append) == made, "what was downloaded is not built"
    assert len(hosts.seen) == asked
    assert machine.left() == [made.name]


async def test_all_are_on_their_way_at_the_same_time(hosts: Releases, machine: Machine) -> None:
    """None is answered before all are asked for."""
    together = asyncio.Barrier(len(PROGRAMS))

    async def wait(request: web.Request) -> web.StreamResponse:
        await together.wait()
        return await hosts.whole(request)

    for program in PROGRAMS:
        hosts.tell(path_of(program), wait)
    assert complete(await machine.download())


async def test_a_running_download_tells_how_much_has_come(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one does not go on before all of that has been told."""
    monkeypatch.setattr(download, "TELL_S", 0.05)

    async def told(_: int) -> None:
        async def look() -> bool:
            last = r"  2 MB of 2 MB, \d+:\d\d so far; on the way: kubectl"
            return any(re.fullmatch(last, line) for line in machine.lines)

        await until(look)

    hosts.tell(KUBECTL, hosts.cut(100_000, told))
    assert complete(await machine.download())
    reports = [line for line in machine.lines if "so far" in line]
    megabytes = r"  \d+ MB( of \d+ MB)?, \d+:\d\d so far; on the way: \S.*"
    assert [line for line in reports if not re.fullmatch(megabytes, line)] == []


# What is not what it should be stops, keeps nothing, and builds nothing.


@pytest.mark.parametrize("program", ["kubectl", "etcd"])
async def test_wrong_sum_stops(hosts: Releases, machine: Machine, program: str) -> None:
    path = path_of(program)
    hosts.files[path] = hosts.files[path][:-1] + b"?"
    said = await machine.refused()
    assert said.startswith(f"{hosts.url}{path} is not what was released: its SHA-256 sum is ")
    assert said.endswith(f", as {hosts.url}{sums_of(program)} has it; nothing is kept")


@pytest.mark.parametrize("program", ["kube-scheduler", "kubectl", "etcd"])
async def test_wrong_version_stops(hosts: Releases, machine: Machine, program: str) -> None:
    """Its sum is right: somebody put the file of another release there."""
    hosts.publish(program, made_up(program, "v1.2.3"))
    wanted = ETCD if program == "etcd" else KUBERNETES
    said = await machine.refused()
    what = f"{hosts.url}{path_of(program)} is not {program} {wanted}"
    assert said == f"{what}: it says that it is v1.2.3; nothing is kept"


async def test_program_that_does_not_run_here_stops(hosts: Releases, machine: Machine) -> None:
    hosts.publish("kube-scheduler", b"\x7fELF\x02\x01\x01" + bytes(FILLER_BYTES))
    assert "kube-scheduler does not run on this machine: Exec format error" in await machine.refused()


@pytest.mark.parametrize("program", ["kubectl", "etcd"])
async def test_login_page_in_place_of_a_sum_is_called_so(hosts: Releases, machine: Machine, program: str) -> None:
    hosts.tell(sums_of(program), page())
    said = await machine.refused()
    file = path_of(program).rpartition("/")[2]
    assert f"{sums_of(program)} is a page, as of a login to this network, and no SHA-256 sum of {file}" in said


@pytest.mark.parametrize("program", ["kubectl", "etcd"])
async def test_login_page_in_place_of_a_program_is_called_so(hosts: Releases, machine: Machine, program: str) -> None:
    hosts.tell(path_of(program), page("\n <html><body>Log in</body></html>"))
    assert f"{path_of(program)} is a page, as of a login to this network: its SHA-256" in await machine.refused()


async def test_sums_without_a_sum_of_the_archive_stop(hosts: Releases, machine: Machine) -> None:
    hosts.files[SUMS_OF_ETCD] = f"{'0' * 64}  etcd-{ETCD}-darwin-amd64.zip\n".encode()
    said = await machine.refused()
    assert f"SHA256SUMS is something else and no SHA-256 sum of etcd-{ETCD}-linux-{HERE}.tar.gz" in said


@pytest.mark.parametrize(
    "content",
    [
        packed([("etcd", made_up("etcd"))]),
        packed([(f"etcd-{ETCD}-linux-{HERE}/etcd", b"->/bin/sh")]),
        b"not an archive",
        packed([(f"etcd-{ETCD}-linux-{HERE}/etcd", made_up("etcd"))])[:9000],
    ],
    ids=["elsewhere", "a link", "no archive", "half an archive"],
)
async def test_archive_without_etcd_stops(hosts: Releases, machine: Machine, content: bytes) -> None:
    hosts.put("etcd", content)
    said = await machine.refused()
    folder = f"etcd-{ETCD}-linux-{HERE}"
    assert said == f"{folder}.tar.gz has no file {folder}/etcd: it is no release of etcd; nothing is kept"


async def test_archive_is_taken_as_it_is_sent(hosts: Releases, machine: Machine) -> None:
    """Some servers call a `.gz` file compressed on the way; unpacked by the client it would not have its sum."""

    async def compressed(request: web.Request) -> web.Response:
        return web.Response(body=hosts.files[request.path], headers={"Content-Encoding": "gzip"})

    hosts.tell(ETCD_ARCHIVE, compressed, times=fetch.ATTEMPTS)
    assert complete(await machine.download())
    assert hosts.asked(ETCD_ARCHIVE)[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("path", [KUBECTL, sums_of("kubectl"), ETCD_ARCHIVE])
async def test_what_is_not_there_stops(hosts: Releases, machine: Machine, path: str) -> None:
    del hosts.files[path]
    assert await machine.refused() == f"{hosts.url}{path} answers 404 Not Found"


async def test_a_file_without_end_stops(hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PROGRAM_BYTES_MAX", 1 << 20)

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(bytes(1 << 16))

    hosts.tell(KUBECTL, endless)
    assert await machine.refused() == f"{hosts.url}{KUBECTL} has more than 1 MB, so it is not what it should be"


# The way there.


async def test_redirects_are_followed_to_other_hosts(hosts: Releases, machine: Machine) -> None:
    async with Releases() as other:
        other.files = {f"/elsewhere{path}": content for path, content in hosts.files.items()}
        hosts.tell(sums_of("kubectl"), redirect("again"))
        again = f"{sums_of('kubectl').rpartition('/')[0]}/again"
        hosts.tell(again, redirect(f"{other.url}/elsewhere{sums_of('kubectl')}", 307))
        for path in hosts.files:
            hosts.tell(path, redirect(f"{other.url}/elsewhere{path}?signature=a%2Fb"))
        assert complete(await machine.download())
        assert {request.query_string for request in other.seen} == {"", "signature=a/b"}
        assert len(other.seen) == 2 * len(PROGRAMS)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://login.hotel.example/?next=x", "'http://login.hotel.example/', which is not https, which is required"),
        ("file:///etc/passwd", "'file:///etc/passwd', which is no URL such as"),
        ("https://[", "'https://[', which is no URL"),
        ("", "'', which is nowhere"),
    ],
)
async def test_redirect_that_may_not_be_followed_stops(
    hosts: Releases, machine: Machine, location: str, why: str
) -> None:
    hosts.tell(KUBECTL, redirect(location))
    said = await machine.refused()
    assert f"{KUBECTL} leads to {why}" in said
    assert "it may be the page where one logs in to this network" in said


async def test_redirects_in_a_circle_stop(hosts: Releases, machine: Machine) -> None:
    hosts.tell(KUBECTL, redirect(KUBECTL), times=100)
    assert await machine.refused() == f"{hosts.url}{KUBECTL} is the end of 10 redirects, and leads on"


@pytest.mark.parametrize("code", [503, 500, 429])
async def test_a_server_that_fails_in_passing_is_asked_again(hosts: Releases, machine: Machine, code: int) -> None:
    hosts.tell(KUBECTL, status(code), times=2)
    hosts.tell(sums_of("etcd"), status(code), times=2)
    assert complete(await machine.download())
    again = [line for line in machine.lines if f"{KUBECTL}: the server answers {code} " in line]
    assert [line.partition("; ")[2] for line in again] == ["0 MB are here, trying again"] * 2


async def test_what_breaks_off_is_resumed(hosts: Releases, machine: Machine) -> None:
    """Twice, further on each time; what has been written is not asked for again."""
    for after in (150_000, 150_000):
        hosts.tell(KUBECTL, hosts.cut(after, lambda count: machine.arrived("kubectl", count)))
    assert complete(await machine.download())
    first, second, third = hosts.asked(KUBECTL)
    assert "Range" not in first.headers
    assert second.headers["Range"] == "bytes=150000-"
    assert second.headers["If-Range"] == third.headers["If-Range"]
    assert third.headers["Range"].startswith("bytes=1")


async def test_without_ranges_it_begins_again(hosts: Releases, machine: Machine) -> None:
    hosts.ranges = False
    hosts.tell(KUBECTL, hosts.cut(150_000, lambda count: machine.arrived("kubectl", count)))
    assert complete(await machine.download())
    assert [request.headers.get("Range") for request in hosts.asked(KUBECTL)] == [None, "bytes=150000-"]


@pytest.mark.parametrize(
    "headers", [{}, {"Content-Range": "bytes 7-9/10"}, {"Content-Range": "somewhere"}, {"status": "416"}]
)
async def test_another_part_than_asked_for_is_not_taken(
    hosts: Releases, machine: Machine, headers: dict[str, str]
) -> None:
    async def other(_: web.Request) -> web.Response:
        code = int(headers.get("status", "206"))
        return web.Response(status=code, body=b"abc", headers={k: v for k, v in headers.items() if k != "status"})

    hosts.tell(KUBECTL, hosts.cut(150_000, lambda count: machine.arrived("kubectl", count)))
    hosts.tell(KUBECTL, other)
    assert complete(await machine.download())
    assert [request.headers.get("Range") for request in hosts.asked(KUBECTL)] == [None, "bytes=150000-", None]


async def test_file_that_changed_meanwhile_begins_again(hosts: Releases, machine: Machine) -> None:
    """Half of one and half of the other would have no sum at all."""
    new = hosts.files[KUBECTL]
    hosts.files[KUBECTL] = bytes(FILLER_BYTES)

    async def change(count: int) -> None:
        await machine.arrived("kubectl", count)
        hosts.files[KUBECTL] = new

    hosts.tell(KUBECTL, hosts.cut(150_000, change))
    assert complete(await machine.download())


async def test_stalled_download_is_resumed(hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "STALL_S", 0.5)
    content = hosts.files[KUBECTL]

    async def half(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await answer.prepare(request)
        await answer.write(content[:150_000])
        await asyncio.Event().wait()
        return answer

    hosts.tell(KUBECTL, half)
    assert complete(await machine.download())
    assert hosts.asked(KUBECTL)[1].headers["Range"] == "bytes=150000-"
    assert any("kubectl: next to nothing arrives within 0.5 s; " in line for line in machine.lines)


async def test_slow_download_is_no_stalled_one(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer than a stall may last, and could not be resumed."""
    monkeypatch.setattr(fetch, "STALL_S", 1.0)
    hosts.ranges = False
    content = hosts.files[KUBECTL]

    async def slowly(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await answer.prepare(request)
        for begin in range(0, len(content), 100_000):
            await answer.write(content[begin : begin + 100_000])
            await asyncio.sleep(0.3)
        return answer

    hosts.tell(KUBECTL, slowly, times=fetch.ATTEMPTS)
    assert complete(await machine.download())


# Only a failure of the network builds.


def hang_up(hosts: Releases) -> None:
    async def nothing(_: int) -> None: ...

    hosts.tell(KUBECTL, hosts.cut(10_000, nothing), times=fetch.ATTEMPTS)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lambda hosts: hosts.tell(KUBECTL, stall(), times=9), r"kubectl: next to nothing arrives within 0\.3 s"),
        (lambda hosts: hosts.tell(KUBECTL, stall(1000), times=9), r"kubectl: next to nothing arrives within 0\.3 s"),
        (lambda hosts: hosts.tell(KUBECTL, status(502), times=9), "kubectl: the server answers 502 Bad Gateway"),
        (hang_up, r"kubectl: 127\.0\.0\.1:\d+: the connection ended before the response"),
    ],
    ids=["stall", "trickle", "502", "cut"],
)
async def test_programs_are_built_if_the_network_fails_again_and_again(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Releases], None], why: str
) -> None:
    monkeypatch.setattr(fetch, "STALL_S", 0.3)
    fault(hosts)
    made = await machine.download()
    assert machine.built
    assert {path.name for path in made.iterdir()} == set(PROGRAMS)
    assert machine.left() == [made.name]
    [said] = [line for line in machine.lines if line.startswith("the download failed, so the programs are built: ")]
    assert re.search(rf"{why}, after 5 attempts$", said)
    assert [line for line in machine.lines if "--download" in line] == []
    assert len(hosts.asked(KUBECTL)) == fetch.ATTEMPTS


async def test_a_host_that_is_away_has_the_programs_built(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, f"http://127.0.0.1:{unused_tcp_port}")
    await machine.download()
    assert machine.built
    assert any("Connection refused, after 5 attempts" in line for line in machine.lines)


# Mirrors, proxies, certificates.


@pytest.fixture
async def official(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Releases]:
    """The official hosts by their names, and those that they lead to; a CA that the machine trusts knows them."""
    assert machine.left() == []
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("dl.k8s.io", "cdn.example", "github.com", "127.0.0.1", "0.0.0.0").configure_cert(tls)  # noqa: S104 (a name in a certificate)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.delenv(MIRROR_VARIABLE)
    monkeypatch.delenv(SUMS_VARIABLE)
    async with Releases(tls) as server:
        yield server.publish_all()


@pytest.fixture
async def proxy(official: Releases, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConnectProxy]:
    """The only way to the official hosts."""
    names = dict.fromkeys(("dl.k8s.io", "github.com", "cdn.example"), ("127.0.0.1", official.port))
    async with ConnectProxy(names, user="me:secret") as server:
        monkeypatch.setenv("HTTPS_PROXY", server.url.replace("//", "//me:secret@"))
        yield server


async def test_official_hosts_are_asked_through_a_proxy(
    official: Releases, proxy: ConnectProxy, machine: Machine
) -> None:
    """Without any variable of ours, over TLS, with redirects to another host."""
    for path in list(official.files):
        official.tell(path, redirect(f"https://cdn.example{path}"))
    assert complete(await machine.download())
    assert machine.lines[0].endswith("from dl.k8s.io and github.com: once")
    assert set(proxy.asked) == {f"CONNECT {name}:443" for name in ("dl.k8s.io", "github.com", "cdn.example")}
    assert {request.path for request in official.seen if request.host == "dl.k8s.io"} == {
        path for path in official.files if "etcd" not in path
    }


async def test_a_redirect_from_https_to_http_is_not_followed(
    official: Releases, hosts: Releases, proxy: ConnectProxy, machine: Machine
) -> None:
    """Not even to this machine."""
    assert proxy.url
    official.tell(KUBECTL, redirect(f"{hosts.url}{KUBECTL}"))
    assert f"https://dl.k8s.io{KUBECTL} leads to '{hosts.url}{KUBECTL}', which is not https" in await machine.refused()


async def test_no_proxy_is_heeded(
    official: Releases, proxy: ConnectProxy, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address 0.0.0.0 is this machine, but none of loopback, which no proxy is asked for anyway."""
    monkeypatch.setenv(MIRROR_VARIABLE, f"https://0.0.0.0:{official.port}")
    monkeypatch.setenv("NO_PROXY", "0.0.0.0/31")
    assert complete(await machine.download())
    assert set(proxy.asked) == {"CONNECT dl.k8s.io:443", "CONNECT github.com:443"}
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.cache / "other"))
    await machine.download()
    assert f"CONNECT 0.0.0.0:{official.port}" in proxy.asked


async def test_a_proxy_that_refuses_has_the_programs_built(
    proxy: ConnectProxy, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:wrong@"))
    await machine.download()
    assert machine.built
    [said] = [line for line in machine.lines if line.startswith("the download failed")]
    assert "its proxy answers 407 " in said
    assert "wrong" not in said


async def test_sums_come_from_the_official_hosts_though_programs_come_from_a_mirror(
    official: Releases, hosts: Releases, proxy: ConnectProxy, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the mirror says of its own files is not asked for."""
    monkeypatch.setenv(MIRROR_VARIABLE, f"{hosts.url}/below/it")
    hosts.files = {f"/below/it{path}": content for path, content in hosts.files.items()}
    assert complete(await machine.download())
    witnesses = "with sums from dl.k8s.io and github.com"
    assert machine.lines[0].endswith(f" from 127.0.0.1, {witnesses}: once")
    assert set(proxy.asked) == {"CONNECT dl.k8s.io:443", "CONNECT github.com:443"}
    assert {request.path for request in hosts.seen} == {f"/below/it{path_of(program)}" for program in PROGRAMS}
    assert {request.path for request in official.seen} == {sums_of(program) for program in PROGRAMS}


async def test_a_mirror_that_changes_a_program_is_found_out(
    official: Releases, hosts: Releases, proxy: ConnectProxy, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its own sum is right."""
    assert proxy.url
    assert official.url
    monkeypatch.setenv(MIRROR_VARIABLE, hosts.url)
    hosts.publish("kubectl", made_up("kubectl").replace(b"#!/bin/sh\n", b"#!/bin/sh\nrm -rf x\n"))
    said = await machine.refused()
    assert said.startswith(f"{hosts.url}{KUBECTL} is not what was released: ")
    assert f"as https://dl.k8s.io{sums_of('kubectl')} has it" in said


@pytest.mark.parametrize(
    ("mirror", "why"),
    [
        ("http://mirror.example.com/k8s", "is not https, which is required of all but loopback addresses"),
        ("http://localhost.example.com", "is not https, which is required of all but loopback addresses"),
        ("mirror.example.com/k8s", "is no URL such as https://mirror.example.com"),
        ("https://a:b:c", ""),
    ],
)
@pytest.mark.parametrize("variable", [MIRROR_VARIABLE, SUMS_VARIABLE])
async def test_mirror_that_will_not_do_is_named(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch, mirror: str, why: str, variable: str
) -> None:
    monkeypatch.setenv(variable, mirror)
    assert (await machine.refused()).startswith(f"{variable}={mirror} {why}")
    assert hosts.seen == []


async def test_password_of_a_mirror_is_sent_and_not_said(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, hosts.url.replace("//", "//me:hush@"))
    hosts.tell(KUBECTL, status(503))
    hosts.tell(KUBECTL, status(403))
    said = [await machine.refused(), *machine.lines]
    assert [line for line in said if "hush" in line] == []
    assert {request.headers["Authorization"] for request in hosts.asked(KUBECTL)} == {"Basic bWU6aHVzaA=="}


async def test_certificate_of_an_unknown_ca_stops(
    official: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, official.url)
    monkeypatch.setenv(SUMS_VARIABLE, official.url)
    monkeypatch.delenv("SSL_CERT_FILE")
    said = await machine.refused()
    assert "unable to get local issuer certificate" in said
    assert "point SSL_CERT_FILE at a file with it" in said
    assert official.seen == []


# Machines.


async def test_other_architecture_has_programs_of_its_own(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, name = {"amd64": ("arm64", "aarch64"), "arm64": ("amd64", "x86_64")}[HERE]
    hosts.files.clear()
    hosts.publish_all(other)
    monkeypatch.setattr("platform.machine", lambda: name)
    assert complete(await machine.download())
    assert f"/etcd-io/etcd/releases/download/{ETCD}/etcd-{ETCD}-linux-{other}.tar.gz" in {r.path for r in hosts.seen}


@pytest.mark.parametrize(("system", "name"), [("Darwin", "arm64"), ("Linux", "riscv64"), ("Linux", "armv7l")])
async def test_machine_without_programs_is_told_so(
    hosts: Releases, machine: Machine, monkeypatch: pytest.MonkeyPatch, system: str, name: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: name)
    assert await machine.refused() == (
        "there are official programs of the control plane for Linux on amd64 and arm64 only, and this is "
        f"{system} on {name}: leave out --download, and they are built"
    )
    assert hosts.seen == []


ENSURE = """
import sys
from vkpsandbox.controlplane.build import ensure_programs
from vkpsandbox.errors import SandboxError
try:
    print(ensure_programs(lambda line: print(line, file=sys.stderr, flush=True), by_download=True))
except SandboxError as error:
    sys.exit(f"refused: {error}")
"""


async def test_two_downloads_at_once_are_one(hosts: Releases, machine: Machine) -> None:
    """The second waits for the first, and finds what it made."""
    waits = asyncio.Event()

    async def wait(request: web.Request) -> web.StreamResponse:
        await waits.wait()
        return await hosts.whole(request)

    hosts.tell(KUBECTL, wait)
    both = [await asyncio.create_subprocess_exec(sys.executable, "-c", ENSURE, stdout=PIPE, stderr=PIPE) for _ in "12"]
    said: list[str] = []

    async def read(stream: asyncio.StreamReader | None) -> None:
        assert stream
        async for line in stream:
            said.append(line.decode().rstrip())
            if "another process prepares" in said[-1]:
                waits.set()

    await asyncio.gather(*(read(process.stderr) for process in both))
    printed = {(await process.communicate())[0].decode() for process in both}
    assert [process.returncode for process in both] == [0, 0], said
    assert printed == {f"{machine.target}\n"}
    assert complete(machine.target)
    assert len(hosts.seen) == 2 * len(PROGRAMS)
    waiting = f"another process prepares the control plane {KUBERNETES}; waiting for it, 0:00 so far"
    assert said.count(waiting) == 1


@pytest.mark.parametrize("command", ["sandbox", "demo"])
async def test_ctrl_c_leaves_nothing(hosts: Releases, machine: Machine, tmp_path: Path, command: str) -> None:
    for program in ("kubectl", "etcd"):
        hosts.tell(path_of(program), stall(100_000))
    calls = {
        "sandbox": ("-m", "vkprovider", "sandbox", "up", "--name=cut", "--download"),
        "demo": ("-m", "vkprovider", "demo", "--name=cut", "--download"),
    }
    state = tmp_path / "state"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *calls[command],
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdout=PIPE,
        stderr=PIPE,
    )
    await machine.arrived("kubectl", 100_000)
    await machine.arrived("etcd*.tar.gz", 100_000)
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == {"sandbox": 1, "demo": 130}[command], out + err
    assert machine.left() == []
    assert not machine.built
    assert not list(state.rglob("*"))


SMALL = """
mount -t tmpfs -o size=1m full "$1" 2>/dev/null || ulimit -f 512
XDG_CACHE_HOME=$1 "$2" -c "$3"
code=$?
find "$1" -type f ! -name '*.lock'
exit $code
"""
"""Runs in a disk of 1 MB, or, where nobody may mount one, with files of 256 kB at most."""


async def test_full_disk_stops(hosts: Releases, machine: Machine, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    inside = ["unshare", "--user", "--map-root-user", "--mount"]
    probe = await asyncio.create_subprocess_exec(*inside, "true", stderr=subprocess.DEVNULL)
    shell = ["/bin/sh", "-c", SMALL, "sh", str(small), sys.executable, ENSURE]
    command = [*inside, *shell] if await probe.wait() == 0 else shell
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    said = err.decode()
    assert process.returncode == 1, said
    last = said.splitlines()[-1]
    assert re.fullmatch(
        rf"refused: {small}/\S+ takes no more: (No space left on device|File too large); nothing is kept there", last
    )
    assert out == b""
    assert not machine.built
    assert hosts.seen


# As it is typed.


async def test_demo_says_in_one_line_why_it_has_no_programs(hosts: Releases, machine: Machine, tmp_path: Path) -> None:
    del hosts.files[KUBECTL]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "vkprovider", "demo", "--download"),
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode() == f"Error: {hosts.url}{KUBECTL} answers 404 Not Found\n"
    assert "   downloading the control plane" in out.decode()
    assert machine.left() == []


def test_there_is_nothing_to_download_for_a_cluster_of_others(tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    refused = CliRunner().invoke(up, [f"--kubeconfig={tmp_path / 'config'}", "--download"])
    assert refused.exit_code == 2
    assert "--download and --kubeconfig exclude each other: no control plane is started" in refused.output


def test_make_fetches_no_go_for_a_download() -> None:
    def steps(*arguments: str) -> list[str]:
        command = ["make", "--no-print-directory", "-n", "demo", *arguments]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 (ourselves)
        return [" ".join(line.split()) for line in shown.stdout.splitlines()]

    assert any("setup go" in line for line in steps())
    cold = steps("DOWNLOAD=1", "KEEP=1")
    assert [line for line in cold if "setup go" in line] == []
    assert cold[-1].endswith("vkprovider demo --download --keep")
