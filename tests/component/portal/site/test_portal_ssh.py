"""Consoles by ssh with a link as password: with OpenSSH and plink, and a provider in the same loop."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import asyncssh
import pytest
from asyncssh.constants import MSG_CHANNEL_OPEN
from asyncssh.packet import Boolean, String, UInt32

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import ACCOUNT
from tests.component.portal.people import INSTRUCTOR_ROLE
from tests.component.portal.site.classroom import token_of
from tests.component.portal.site.consolebench import console_bench
from tests.component.portal.site.sshclients import OpenSsh, program, started
from tests.component.portal.site.test_portal_links import given
from tests.component.portal.site.test_portal_links_used import LinkedBench, opened
from tests.support.apiserver import ApiServer
from tests.support.judges import run_judge
from tests.support.mosquitto import free_port
from vkprovider.classroom import access, links
from vkprovider.classroom.links import new_code
from vkprovider.classroom.pods import pods_in
from vkprovider.platform.http.answers import TooManyReviews
from vkprovider.portal.ssh import door, logins, server
from vkprovider.portal.web.consoles.bridge import OF_CALLER_MAX
from vkprovider.portal.web.links import LinkTokens, LinkTries


class SshBench(NamedTuple):
    """A lablet that bob opens by ssh with his link."""

    linked: LinkedBench
    port: int
    folder: Path
    bob: OpenSsh

    def with_password(self, name: str, password: str) -> OpenSsh:
        """Return OpenSSH with another password."""
        folder = self.folder / name
        folder.mkdir()
        return OpenSsh(folder, self.port, password)


def new_key(path: Path) -> str:
    command = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True)  # noqa: S603 (of this test)
    return path.read_text()


@pytest.fixture
async def by_ssh(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[SshBench]:
    port = free_port()
    env = {"VKPROVIDER_PORTAL_SSH_PORT": str(port), "VKPROVIDER_PORTAL_SSH_HOST_KEY": new_key(tmp_path / "hostkey")}
    async with console_bench(portal_server, tmp_path, **env) as bench, opened(bench) as linked:
        yield SshBench(linked, port, tmp_path, OpenSsh(tmp_path, port, linked.code.text))


async def test_openssh_types_reads_a_list_and_leaves(by_ssh: SshBench) -> None:
    bob, lablet = by_ssh.bob, by_ssh.linked.bench.site.lablet
    async with bob.run("bob+h0", "-tt") as ssh:
        await ssh.shows("h0:~# ")
        await ssh.type("echo by-ssh\r")
        await ssh.shows("by-ssh\r\n")
        async with bob.run(f"bob+{lablet.namespace}+H0", "-tt") as other:
            await other.shows("h0:~# ")
            await ssh.shows("elsewhere")
            assert (await ssh.ends())[0] == 1
            await other.type("\x1d")
            assert (await other.ends())[0] == 0
    async with bob.run("bob") as ssh:
        status, said = await ssh.ends()
    assert status == 0
    assert ("Say which device you want." in said, "  r1 " in said, "ssh bob+" in said) == (True, True, True)
    async with bob.run("bob+r9") as ssh:
        status, said = await ssh.ends()
    assert (status, "r9 is no device of this lab" in said) == (1, True)


async def test_a_client_keeps_its_escapes_and_a_break_is_answered(by_ssh: SshBench) -> None:
    async with by_ssh.bob.run("bob+h0", "-tt") as ssh:
        await ssh.shows("h0:~# ")
        await ssh.type("\r~B")
        await ssh.shows(logins.NO_BREAK)
        await ssh.type("\recho '~~'\r")
        await ssh.shows("~~")
        await ssh.type("\r~.")
        assert (await ssh.ends())[0] == 255


async def test_nothing_else_is_served(by_ssh: SshBench) -> None:
    bob = by_ssh.bob
    for command, told in {"show version": logins.NO_COMMAND, "scp -t .": logins.NO_FILES}.items():
        async with bob.run("bob+h0", "-T", command=command) as ssh:
            status, said = await ssh.ends()
        assert (status, told in said) == (1, True), said
    (by_ssh.folder / "file").write_text("x")
    for name, *words in (
        ("sftp", "bob+h0@127.0.0.1"),
        ("scp", str(by_ssh.folder / "file"), "bob+h0@127.0.0.1:"),
        ("scp", "-O", str(by_ssh.folder / "file"), "bob+h0@127.0.0.1:"),
    ):
        async with bob.copy(name, *words) as copying:
            status, said = await copying.ends()
        assert (status != 0, logins.NO_FILES in said) == (True, True), said
    here = free_port()
    async with bob.run(
        "bob+h0", "-tt", f"-L{here}:127.0.0.1:22", "-R0:127.0.0.1:22", "-A", "-X", "-oLogLevel=INFO"
    ) as ssh:
        await ssh.shows(logins.NO_FORWARDING)
        await ssh.shows("h0:~# ")
        _, writer = await asyncio.open_connection("127.0.0.1", here)
        await ssh.shows(logins.NO_FORWARDING)
        writer.close()


async def test_who_has_no_link_of_bobs_is_refused(by_ssh: SshBench) -> None:
    bench, code = by_ssh.linked.bench, by_ssh.linked.code
    lablet, teacher = bench.site.lablet, token_of(await bench.people.person("teacher", INSTRUCTOR_ROLE))
    wrong = {
        "a stranger": ("bob+h0", "secret"),
        "an instructor": ("bob+h0", teacher),
        "guessed": ("bob+h0", code._replace(secret="a" * 26).text),
        "of another": ("bob+h0", new_code(lablet.namespace, "carol").text),
        "in another's name": ("carol+h0", code.text),
        "without a name": ("+h0", code.text),
    }
    for name, (login, password) in wrong.items():
        async with by_ssh.with_password(name, password).run(login) as ssh:
            status, said = await ssh.ends()
        assert (status, "Permission denied" in said) == (255, True), (name, said)
    key = by_ssh.folder / "key"
    new_key(key)
    methods = ("-oPubkeyAuthentication=yes", "-oPasswordAuthentication=no", "-oKbdInteractiveAuthentication=no")
    async with by_ssh.bob.run("bob+h0", f"-i{key}", *methods) as ssh:
        assert (await ssh.ends())[0] == 255


async def test_a_link_that_is_taken_back_ends_what_is_open(by_ssh: SshBench) -> None:
    kube, lablet = by_ssh.linked.kube, by_ssh.linked.bench.site.lablet
    async with by_ssh.bob.run("bob+h0", "-tt") as ssh:
        await ssh.shows("h0:~# ")
        await links.take_back(kube, lablet.namespace, (await links.links_in(kube, lablet.namespace)).values())
        [found] = [each for each in await pods_in(kube, lablet.namespace).list() if each.metadata.name == lablet.name]
        assert await access.open_access(kube, lablet.namespace, [found]) == ()
        await ssh.shows("You may not use this console any more", within_s=90)
        assert (await ssh.ends())[0] == 1
    async with by_ssh.bob.run("bob+h0") as ssh:
        assert "Permission denied" in (await ssh.ends())[1]


async def test_a_connection_that_goes_on_opens_nothing_once_the_link_is_another(by_ssh: SshBench) -> None:
    code, lablet = by_ssh.linked.code, by_ssh.linked.bench.site.lablet
    options: dict[str, Any] = {"known_hosts": None, "config": None, "username": "bob", "password": code.text}
    async with asyncssh.connect("127.0.0.1", by_ssh.port, **options) as connection:
        assert (await connection.run()).exit_status == 0
        await given(by_ssh.linked.kube, lablet.namespace, lablet.name, again=True)

        async def is_refused() -> bool:
            done = await connection.run()
            return done.exit_status == 1 and logins.NOT_YET in str(done.stderr)

        await eventually(is_refused, "it is remembered for ten seconds")


async def test_a_second_person_watches_and_takes_over(by_ssh: SshBench) -> None:
    bench = by_ssh.linked.bench
    ann = await bench.cookie(await bench.teacher("ann"))
    async with await bench.screen(ann, "h0") as screen:
        await screen.shows("h0:~# ")
        async with by_ssh.bob.run("bob+h0", "-tt") as ssh:
            await ssh.shows("ann types at the console of h0")
            await ssh.shows("console --take-over")
            await screen.type("echo to-both\r")
            await ssh.shows("to-both")
            await ssh.type("\x03")
            assert (await ssh.ends())[0] == 0
        async with by_ssh.bob.run("bob+h0", "-tt", command="console --take-over") as ssh:
            await ssh.shows("h0:~# ")
            await ssh.type("echo taken\r")
            await screen.shows("taken")
            await screen.hears("bob types", lambda it: it["who"] == "bob")


async def test_a_flood_of_connections_costs_no_key_exchange(by_ssh: SshBench) -> None:
    """One sender has so many that wait for their login; who has logged in before goes on."""
    async with contextlib.AsyncExitStack() as stack:
        ssh = await stack.enter_async_context(by_ssh.bob.run("bob+h0", "-tt"))
        await ssh.shows("h0:~# ")
        first: list[bytes] = []
        writers = []
        for _ in range(door.OF_SOURCE_MAX + 8):
            reader, writer = await asyncio.open_connection("127.0.0.1", by_ssh.port)
            stack.callback(writer.close)
            writers.append(writer)
            first.append(await asyncio.wait_for(reader.readline(), 30))
        refused = [line for line in first if not line.startswith(b"SSH-2.0-vkprovider")]
        assert refused == [f"{logins.TOO_MANY}\r\n".encode()] * 8
        await ssh.type("echo goes-on\r")
        await ssh.shows("goes-on\r\n")
        for writer in writers:
            writer.close()
        await asyncio.sleep(0)

        async def lets_in() -> bool:
            async with by_ssh.bob.run("bob") as again:
                return (await again.ends())[0] == 0

        await eventually(lets_in, "there is room again")


class RawClient(asyncssh.SSHClient):
    """A client of asyncssh that says why its connection has ended.

    Attributes:
        lost: Why.
    """

    def __init__(self) -> None:
        self.lost: Exception | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc


class ChangingClient(RawClient):
    """One that asks to change a password as often as it is asked for one.

    Attributes:
        asked: How often it was.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self._connection: asyncssh.SSHClientConnection | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    async def password_auth_requested(self) -> str | None:
        self.asked += 1
        if self._connection is None or self.asked > 8:
            return None
        change = (Boolean(True), String("x"), String("y"))  # noqa: FBT003 (as asyncssh has it)
        await self._connection.send_userauth_request(b"password", *change)
        return "x"


def raw_options(by_ssh: SshBench, **given: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"known_hosts": None, "config": None, "username": "bob", "agent_path": None}
    return {**known, "client_keys": None, "port": by_ssh.port, "password": by_ssh.linked.code.text, **given}


def channel_of(connection: asyncssh.SSHClientConnection, packet_bytes: int) -> asyncssh.SSHClientChannel[bytes]:
    """Return a channel that is not open yet; `packet_bytes` are the most that the portal may send at once."""
    loop = asyncio.get_running_loop()
    return asyncssh.SSHClientChannel(connection, loop, "strict", None, "strict", 65536, packet_bytes)


async def test_a_stranger_sends_little_before_the_login(by_ssh: SshBench) -> None:
    """Each character of a password takes time of the whole portal."""
    with pytest.raises((asyncssh.ConnectionLost, ConnectionError)):
        await asyncssh.connect("127.0.0.1", **raw_options(by_ssh, password="a" * 128 * 1024))
    reader, writer = await asyncio.open_connection("127.0.0.1", by_ssh.port)
    assert (await reader.readline()).startswith(b"SSH-2.0-")
    with contextlib.suppress(ConnectionError):
        writer.write(b"SSH-2.0-x\r\n" + (200 * 1024).to_bytes(4, "big") + b"x" * 150 * 1024)
        await asyncio.wait_for(reader.read(), 10)
    writer.close()
    async with by_ssh.bob.run("bob") as ssh:
        assert (await ssh.ends())[0] == 0


async def test_who_asks_to_change_a_password_has_no_second_try(by_ssh: SshBench) -> None:
    client = ChangingClient()
    with pytest.raises(asyncssh.DisconnectError, match=logins.TRIED_TOO_OFTEN):
        await asyncssh.connect("127.0.0.1", client_factory=lambda: client, **raw_options(by_ssh, password=None))
    assert client.asked == 1


async def test_a_client_that_never_reads_is_left(by_ssh: SshBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens what is refused with a sentence, and reads no refusal."""
    monkeypatch.setattr(server, "_STUCK_S", 1.0, raising=False)
    connection = await asyncssh.connect("127.0.0.1", **raw_options(by_ssh))
    transport: Any = connection._transport
    transport.pause_reading()
    refused = (String("direct-tcpip"), UInt32(0), UInt32(1), UInt32(32768))
    asked = (*refused, String("127.0.0.1"), UInt32(22), String("127.0.0.1"), UInt32(1))
    async with asyncio.timeout(90):
        while not connection.is_closed():
            for _ in range(100):
                connection.send_packet(MSG_CHANNEL_OPEN, *asked)
            await asyncio.sleep(0)


async def test_a_client_that_takes_little_at_once_is_left(by_ssh: SshBench) -> None:
    client = RawClient()
    connection = await asyncssh.connect("127.0.0.1", client_factory=lambda: client, **raw_options(by_ssh))
    await channel_of(connection, 1)._open(b"session")
    await asyncio.wait_for(connection.wait_closed(), 30)
    assert logins.SMALL_PACKETS in str(client.lost)


async def test_a_session_that_does_not_start_ends_and_holds_little(
    by_ssh: SshBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncssh.connect("127.0.0.1", **raw_options(by_ssh)) as connection:
        with monkeypatch.context() as here:
            here.setattr(server, "_START_S", 1.0, raising=False)
            channel = channel_of(connection, 32768)
            await channel._open(b"session")
            assert channel._send_window == 64 * 1024

            async def has_ended() -> bool:
                return channel.is_closing()

            await eventually(has_ended, "the portal ends the session")
        assert (await connection.run()).exit_status == 0


async def test_a_connection_without_a_session_ends_with_its_link(
    by_ssh: SshBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_IDLE_S", 1.0, raising=False)
    kube, lablet = by_ssh.linked.kube, by_ssh.linked.bench.site.lablet
    connection = await asyncssh.connect("127.0.0.1", **raw_options(by_ssh))
    await asyncio.sleep(3)
    assert not connection.is_closed()
    await links.take_back(kube, lablet.namespace, (await links.links_in(kube, lablet.namespace)).values())
    await asyncio.wait_for(connection.wait_closed(), 60)


async def test_one_connection_too_many_reads_why(by_ssh: SshBench) -> None:
    """Places are of the account with its namespace: another class's `bob` has others."""
    client = RawClient()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(OF_CALLER_MAX):
            await stack.enter_async_context(asyncssh.connect("127.0.0.1", **raw_options(by_ssh)))
        last = await asyncssh.connect("127.0.0.1", client_factory=lambda: client, **raw_options(by_ssh))
        await asyncio.wait_for(last.wait_closed(), 30)
    assert logins.TOO_MANY in str(client.lost)


async def test_one_sender_of_codes_leaves_others_theirs(by_ssh: SshBench) -> None:
    code = by_ssh.linked.code
    tries = LinkTries(LinkTokens(by_ssh.linked.kube))
    refused = 0
    for number in range(400):
        try:
            assert await tries.open("192.0.2.1", new_code(code.namespace, f"x{number}")) is None
        except TooManyReviews:
            refused += 1
    assert refused > 200
    assert await tries.open("192.0.2.2", code) is not None


def fingerprint(key: Path) -> str:
    command = [program("ssh-keygen"), "-l", "-f", str(key)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]  # noqa: S603 (of this test)


@contextlib.asynccontextmanager
async def other_process(by_ssh: SshBench, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run another replica of the portal, as a process of its own."""
    server, env = by_ssh.linked.bench.portal.server, by_ssh.linked.bench.portal_env
    given = {
        **env,
        "KUBECONFIG": server.write_provider_kubeconfig(by_ssh.folder / "other", account=ACCOUNT),
        "LABLET_CONTROLLER_INSTANCE_ID": "by-ssh",
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_PORT": "0",
        "VKPROVIDER_PORTAL_SSH_PORT": str(port),
    }
    command = (str(Path(sys.executable).with_name("vkprovider")), "portal")
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **given})
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_a_portal_that_is_killed_ends_the_session_and_another_replica_goes_on(by_ssh: SshBench) -> None:
    there = OpenSsh(by_ssh.folder, free_port(), by_ssh.linked.code.text)
    async with other_process(by_ssh, there.port) as process:

        async def lets_in() -> bool:
            async with there.run("bob") as ssh:
                return (await ssh.ends())[0] == 0

        await eventually(lets_in, "the other replica lets bob in")
        async with there.run("bob+h0", "-tt", "-oLogLevel=INFO") as ssh:
            await ssh.shows("h0:~# ")
            await ssh.type("echo here\r")
            await ssh.shows("h0:~# ")
            process.kill()
            await ssh.shows("Connection to 127.0.0.1 closed by remote host.")
            assert (await ssh.ends())[0] == 255
    async with by_ssh.bob.run("bob+h0", "-tt") as ssh:
        await ssh.shows("h0:~# ")
        await ssh.type("echo goes-on\r")
        await ssh.shows("goes-on\r\n")
        by_ssh.linked.bench.running.stop_event.set()
        await ssh.shows("This portal restarts; your lab goes on.")
        assert (await ssh.ends())[0] == 1


async def test_plink_types(by_ssh: SshBench) -> None:
    key = fingerprint(by_ssh.folder / "hostkey")
    words = ("-ssh", "-batch", "-t", "-hostkey", key, "-pw", by_ssh.linked.code.text, "-P", str(by_ssh.port))
    async with started(program("plink"), *words, "bob+h0@127.0.0.1", env={"HOME": str(by_ssh.folder)}) as plink:
        await plink.shows("h0:~# ")
        await plink.type("echo by-plink\r")
        await plink.shows("by-plink")
        await plink.type("\x1d")
        assert (await plink.ends())[0] == 0


NETMIKO = """
import os
from netmiko import ConnectHandler
with ConnectHandler(
    device_type="cisco_ios", host="127.0.0.1", port=int(os.environ["PORT"]), username="bob+r1",
    password=os.environ["CODE"], fast_cli=False, conn_timeout=30,
) as r1:
    r1.enable()
    print(r1.find_prompt())
    print(r1.send_command("show version"))
"""


async def test_netmiko_reads_a_router(by_ssh: SshBench) -> None:
    env = {"PORT": str(by_ssh.port), "CODE": by_ssh.linked.code.text, **dict(os.environ)}
    said = await asyncio.to_thread(run_judge, "netmiko-4.8", "-c", NETMIKO, environment=env)
    assert "r1#" in said
    assert "Cisco IOS Software" in said
