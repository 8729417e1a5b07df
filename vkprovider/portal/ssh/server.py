"""The SSH server of a replica; it alone imports asyncssh.

Of SSH there is what a console needs: a password, which is a link; sessions with a terminal or without one; and bytes
both ways, as they are, so that the escapes of clients, such as OpenSSH's `~.`, stay theirs. A serial line has no size,
so that changes of a window's are taken and mean nothing.
"""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Final, cast

import asyncssh
import structlog

from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.connections import hosts_of
from vkprovider.platform.http.open import Places
from vkprovider.platform.reasons import StartReason
from vkprovider.portal.ssh import logins
from vkprovider.portal.ssh.door import Door, SshPerson, TooManyStrangersError
from vkprovider.portal.ssh.terminal import SshConsoles
from vkprovider.portal.web.consoles.bridge import CONSOLES_MAX, OF_CALLER_MAX
from vkprovider.portal.web.links import sender_of

_log: Final = structlog.get_logger(__name__)
_VERSION: Final = "vkprovider"
_KEY_EXCHANGES: Final = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
)
"""Those that cost little: others take ten times as long, and anybody may ask for one."""
_LOGIN_S: Final = 30
_LOGIN_BYTES_MAX: Final = 16 * 1024
"""The most bytes of a client before its login: an honest one takes 5 KB, and each byte of a password takes time."""
_TRIES_MAX: Final = 4
"""The most passwords of one connection."""
_SESSIONS_MAX: Final = 10
"""The most sessions of one connection, as OpenSSH has it."""
_ALIVE_S: Final = 15
_SILENT_MAX: Final = 3
"""A client that does not answer so often has gone."""
_UNREAD_BYTES_MAX: Final = 64 * 1024
_STUCK_S: Final = 30.0
"""How long what is sent may wait for its reader."""
_PACKET_BYTES_MIN: Final = 256
"""A client that takes less at once makes the replica send many packets for little."""
_START_S: Final = 30.0
"""How long a session may be open before it starts."""
_IDLE_S: Final = 60.0
"""How often the link of a connection without a console is compared."""
_LEAVE_S: Final = 2.0
"""How long consoles may say why they end when the replica does."""
_AGAIN_S: Final = 0.5
_BACKLOG: Final = 128


class SshPort:
    """The port of a replica."""

    def __init__(self, host: str, port: int, host_key: str, door: Door, consoles: SshConsoles) -> None:
        """Listen; nobody is served before `run`.

        Args:
            host: The address to listen on; see `hosts_of`.
            port: Its port.
            host_key: The private key by which clients know the portal, as `ssh-keygen` writes it.
            door: Lets people in.
            consoles: Opens consoles.

        Raises:
            InputError: `SettingInvalid`: the key is none, the port is taken, or the address is not this machine's.
        """
        asyncssh.set_log_level("WARNING")
        self._door = door
        self._consoles = consoles
        self._known = Places(CONSOLES_MAX, OF_CALLER_MAX, lambda _: TooManyStrangersError(logins.TOO_MANY))
        self._connections: set[asyncio.Task[None]] = set()
        self._options = asyncssh.SSHServerConnectionOptions(
            server_factory=lambda: _Login(door, consoles),
            server_host_keys=[_key_of(host_key)],
            server_version=_VERSION,
            kex_algs=_KEY_EXCHANGES,
            compression_algs=["none"],
            encoding=None,
            line_editor=False,
            window=_UNREAD_BYTES_MAX,
            agent_forwarding=False,
            x11_forwarding=False,
            gss_host=None,
            login_timeout=_LOGIN_S,
            keepalive_interval=_ALIVE_S,
            keepalive_count_max=_SILENT_MAX,
        )
        self._listeners = [_listening(each, port) for each in hosts_of(host)]

    async def run(self) -> None:
        """Serve for ever."""
        try:
            async with asyncio.TaskGroup() as accepting:
                for listener in self._listeners:
                    accepting.create_task(self._accept(listener))
        finally:
            for listener in self._listeners:
                listener.close()
            if self._connections:
                await asyncio.wait(self._connections, timeout=_LEAVE_S)
            await end_tasks(self._connections)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listener)
            except OSError as error:  # such as too many open files
                _log.warning("no connection by ssh is accepted", error=str(error))
                await asyncio.sleep(_AGAIN_S)
                continue
            task = asyncio.create_task(self._serve(sock, address[0]), name="ssh")
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _serve(self, sock: socket.socket, address: str) -> None:
        """Serve a connection until it ends; one too many is refused before its key exchange."""
        try:
            with self._door.stranger(sender_of(address)):
                connection = await self._logged_in(sock)
        except TooManyStrangersError as refusal:
            with suppress(OSError):
                sock.send(f"{refusal}\r\n".encode())
            sock.close()
            return
        except (OSError, TimeoutError, asyncssh.Error):
            sock.close()
            return
        login = connection.get_owner()
        async with connection:
            if not isinstance(login, _Login) or login.person is None:
                return
            try:
                with self._known.taken(login.person.visitor.known.of_cluster.username):
                    await self._until_over(connection, login, login.person)
            except TooManyStrangersError as refusal:
                connection.disconnect(asyncssh.DISC_TOO_MANY_CONNECTIONS, str(refusal))

    async def _until_over(self, connection: "_Connection", login: "_Login", person: SshPerson) -> None:
        """Wait until a connection is closed, or has no console, and its link leads nowhere any more."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_S):
                    await connection.wait_closed()
                    return
            with suppress(Refused, OutsideError):
                if not login.serving and await self._door.again(person) is None:
                    return

    async def _logged_in(self, sock: socket.socket) -> "_Connection":
        """Return a connection once its login is over, as `asyncssh.run_server` does, which knows no class of ours.

        Raises:
            OSError: The client has gone.
            asyncssh.Error: It is refused, or takes too long.
        """
        loop = asyncio.get_running_loop()
        options = await asyncssh.SSHServerConnectionOptions.construct(self._options)
        options.waiter = loop.create_future()
        _, connection = await loop.create_connection(lambda: _Connection(loop, options), sock=sock)
        try:
            await options.waiter
        except BaseException:
            connection.abort()
            await connection.wait_closed()
            raise
        return connection


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        text = f"ssh cannot listen on {host}:{port}: {why}; set VKPROVIDER_PORTAL_SSH_PORT"
        raise InputError(StartReason.SETTING_INVALID, text) from error
    listener.settimeout(0)
    return listener


def _key_of(text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(text.strip() + "\n")
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise InputError(
            StartReason.SETTING_INVALID,
            f"VKPROVIDER_PORTAL_SSH_HOST_KEY is no private key without a passphrase: {error}; make one: "
            "ssh-keygen -t ed25519 -N '' -f key",
        ) from None


class _Connection(asyncssh.SSHServerConnection):
    """A connection that takes little before its login, and ends where what is sent is not read.

    Attributes:
        drained: Is set while what was sent is on its way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, options: asyncssh.SSHServerConnectionOptions) -> None:
        super().__init__(loop, options, wait="auth")
        self.drained = asyncio.Event()
        self.drained.set()
        self._login_bytes = 0
        self._stuck: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        login = self.get_owner()
        if not isinstance(login, _Login) or login.person is None:
            self._login_bytes += len(data)
            if self._login_bytes > _LOGIN_BYTES_MAX:
                self.abort()
                return
        super().data_received(data, datatype)

    def pause_writing(self) -> None:
        self.drained.clear()
        if self._stuck is None:
            self._stuck = asyncio.get_running_loop().call_later(_STUCK_S, self.abort)

    def resume_writing(self) -> None:
        self.drained.set()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def connection_lost(self, exc: Exception | None = None) -> None:
        self.resume_writing()
        super().connection_lost(exc)


class _Login(asyncssh.SSHServer):
    """One connection: who it is, and what is refused to them.

    Attributes:
        person: Who it is, once they are known.
        wanted_forwarding: Whether something was to be forwarded, which a client is not told why not.
        serving: How many of its sessions have started, and not ended.
    """

    def __init__(self, door: Door, consoles: SshConsoles) -> None:
        self.person: SshPerson | None = None
        self.wanted_forwarding = False
        self.serving = 0
        self._door = door
        self._consoles = consoles
        self._tries = 0
        self._sessions = 0
        self._connection: _Connection | None = None
        self._source = ""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = cast("_Connection", conn)
        peer = conn.get_extra_info("peername")
        if peer:
            self._source = sender_of(peer[0])

    def password_auth_supported(self) -> bool:
        return True

    async def validate_password(self, username: str, password: str) -> bool:
        self._tries += 1
        if self._tries > _TRIES_MAX:
            self._end(logins.TRIED_TOO_OFTEN)
            return False
        try:
            self.person = await self._door.by_link(username, password, self._source)
        except Refused as refusal:
            self._end(refusal.message)
        return self.person is not None

    def change_password(self, username: str, old_password: str, new_password: str) -> bool:  # noqa: ARG002 (as asyncssh has it)
        self._end(logins.TRIED_TOO_OFTEN)
        return False

    def _end(self, sentence: str) -> None:
        if self._connection is not None:
            self._connection.disconnect(asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, sentence)

    def session_requested(self) -> "_Session | bool":
        if self._connection is None or self.person is None or self._sessions >= _SESSIONS_MAX:
            return False
        self._sessions += 1
        return _Session(self, self.person, self._consoles, self._connection.drained)

    def session_ended(self) -> None:
        """Take note that a session has ended."""
        self._sessions -= 1

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:  # noqa: ARG002 (as asyncssh has it)
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, logins.NO_FORWARDING)

    def unix_connection_requested(self, dest_path: str) -> bool:  # noqa: ARG002 (as asyncssh has it)
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, logins.NO_FORWARDING)

    def server_requested(self, listen_host: str, listen_port: int) -> bool:  # noqa: ARG002 (as asyncssh has it)
        self.wanted_forwarding = True
        return False

    def unix_server_requested(self, listen_path: str) -> bool:  # noqa: ARG002 (as asyncssh has it)
        self.wanted_forwarding = True
        return False


class _Session(asyncssh.SSHServerSession[bytes]):
    """A session of a connection: a `TerminalStream`."""

    def __init__(self, login: _Login, person: SshPerson, consoles: SshConsoles, drained: asyncio.Event) -> None:
        self._login = login
        self._person = person
        self._consoles = consoles
        self._command = ""
        self._refusal = ""
        self._has_terminal = False
        self._typed = bytearray()
        self._is_over = False
        self._heard, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._drained = drained
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._starting: asyncio.TimerHandle | None = None
        self._serving: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------------------ what asyncssh calls

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        if chan._send_pktsize < _PACKET_BYTES_MIN:  # noqa: SLF001 (asyncssh tells it nowhere)
            chan.get_connection().disconnect(asyncssh.DISC_PROTOCOL_ERROR, logins.SMALL_PACKETS)
            return
        self._starting = asyncio.get_running_loop().call_later(_START_S, chan.abort)

    def pty_requested(self, term_type: str, term_size: object, term_modes: object) -> bool:  # noqa: ARG002 (as asyncssh has it)
        self._has_terminal = True
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        self._refusal = logins.NO_FILES if subsystem == "sftp" else logins.NO_COMMAND
        return True

    def session_started(self) -> None:
        self._has_started()
        if self._channel is not None:
            self._serving = asyncio.create_task(self._serve(self._channel), name="session by ssh")

    def data_received(self, data: bytes, datatype: int | None) -> None:  # noqa: ARG002 (as asyncssh has it)
        self._typed += data
        if self._channel is not None and len(self._typed) > _UNREAD_BYTES_MAX:
            self._channel.pause_reading()
        self._heard.set()

    def eof_received(self) -> bool:
        self._over()
        return True

    def break_received(self, msec: int) -> bool:  # noqa: ARG002 (as asyncssh has it)
        self.say(logins.NO_BREAK)
        return False

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (as asyncssh has it)
        self._login.session_ended()
        self._has_started()
        self._over()
        self._writable.set()

    def _has_started(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None

    def _over(self) -> None:
        self._is_over = True
        self._heard.set()

    # ------------------------------------------------------------------------------------------ as a terminal

    async def read(self) -> bytes:
        """Return what was typed next; none at the end."""
        while not self._typed and not self._is_over:
            self._heard.clear()
            await self._heard.wait()
        typed = bytes(self._typed)
        self._typed.clear()
        if self._channel is not None and not self._is_over:
            self._channel.resume_reading()
        return typed

    async def write(self, data: bytes) -> None:
        """Show bytes, and wait while the client is slow.

        Raises:
            ConnectionError: It has gone.
        """
        if self._channel is None:
            raise BrokenPipeError
        self._channel.write(data)
        await self._writable.wait()
        await self._drained.wait()

    def say(self, text: str) -> None:
        """Show a text beside the output of the device: of a session without a terminal, as an error."""
        end = "\r\n" if self._has_terminal else "\n"
        shown = "".join(each if each.isprintable() or each == "\n" else "?" for each in text)
        line = (shown.replace("\n", end) + end).encode()
        if self._channel is None:
            return
        with suppress(ConnectionError):
            if self._has_terminal:
                self._channel.write(b"\r\n" + line)
            else:
                self._channel.write_stderr(line)

    async def _serve(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        status = 1
        self._login.serving += 1
        try:
            if self._login.wanted_forwarding:
                self.say(logins.NO_FORWARDING)
            mode = logins.mode_of(self._command)
            if self._refusal or mode is None:
                self.say(self._refusal or (logins.NO_FILES if logins.is_copy(self._command) else logins.NO_COMMAND))
                return
            status = await self._consoles.serve(self._person, mode, self)
        finally:
            self._login.serving -= 1
            with suppress(OSError):
                channel.exit(status)
