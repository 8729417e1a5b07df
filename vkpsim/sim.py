"""`vkprovider sim`: simulators of the systems around vkprovider."""

import asyncio
import datetime as dt
import signal
import ssl
from pathlib import Path
from typing import Final, TypeVar, get_args

import click
import msgspec

from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.server import CmlSimulator
from vkpsim.cml.simulation import DEFAULT_VERSION, Settings
from vkpsim.cml.world.boots import parse_range
from vkpsim.http.faults import Fault
from vkpsim.http.tls import self_signed, server_context
from vkpsim.lds.events.cloudevents import Mode
from vkpsim.lds.events.eventfaults import EventFault
from vkpsim.lds.events.sender import EventSettings
from vkpsim.lds.grading import Check, Grader, Rule
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

T = TypeVar("T")

LAST_PORT: Final = 65535


class SecondsRange(click.ParamType[tuple[float, float]]):
    """`5` or `5-20`."""

    name = "seconds"

    def convert(
        self, value: str | tuple[float, float], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Read the range."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_range(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


CML_EPILOG: Final = """\
\b
Faults, in the file of --faults or by POST /sim/faults, one JSON object each:
  {"kind": "status", "route": "^PUT .*/start$", "status": 503, "count": 3}
  delay         answered delay_s later
  status        not carried out, answered with status
  unauthorized  not carried out, answered with 401; the token stays good
  lost_token    all tokens end first, as after a restart
  drop          not carried out, the connection breaks
  lost_answer   carried out, the connection breaks instead of an answer
  silence       accepted, never answered: a half-open connection
route is a regular expression on "METHOD /path"; count, seconds, rate (0 to 1)
and skip limit the requests that a fault affects. DELETE /sim/faults ends all.

\b
Further orders:
  PUT    /sim/latency   {"latency_ms": 200}
  POST   /sim/silence   {"seconds": 60, "mode": "hold"}, or "refuse"
  POST   /sim/compute   {"connected": false}: lose the compute host
  POST   /sim/licence   {"quota": 5, "registered": true}
  POST   /sim/reboot    all devices stop
  POST   /sim/nodes/{lab}/{node}/crash
  PUT    /sim/password  {"password": "new"}
  DELETE /sim/sessions  all tokens end
  GET    /sim/access-log
"""


@click.group()
def sim() -> None:
    """Run a simulator alone."""


@sim.command(epilog=CML_EPILOG)
@click.option("--listen", default="127.0.0.1:8443", show_default=True, metavar="HOST:PORT", help="Port 0: a free one.")
@click.option("--username", default="admin", show_default=True)
@click.option("--password", required=True, envvar="VKPROVIDER_SIM_PASSWORD", help="Or VKPROVIDER_SIM_PASSWORD.")
@click.option("--tls", is_flag=True, help="HTTPS with a self-signed certificate.")
@click.option("--cert", type=click.Path(path_type=Path, exists=True), help="Certificate for HTTPS, PEM.")
@click.option("--key", type=click.Path(path_type=Path, exists=True), help="Its key, PEM.")
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help="The CML release to play.")
@click.option("--state", type=click.Path(path_type=Path), help="File that keeps the labs over a restart.")
@click.option("--access-log", type=click.Path(path_type=Path), help="File for one JSON line per request.")
@click.option("--boot-seconds", type=SecondsRange(), default="1", show_default=True, metavar="A[-B]")
@click.option("--boot", multiple=True, metavar="DEFINITION=A[-B]", help="Boot time of one node definition; repeatable.")
@click.option(
    "--boot-speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="How many seconds of a boot, and of CML's time-out for it, pass in one.",
)
@click.option("--stop-seconds", type=float, default=0.0, show_default=True, help="How long nodes take to stop.")
@click.option(
    "--console-baud",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Speed of serial lines: devices drop keys that come faster. 0: no limit.",
)
@click.option("--latency-ms", type=float, default=0.0, show_default=True, help="Added to every request.")
@click.option("--licence-nodes", type=int, default=500, show_default=True, help="Maximum number of running nodes.")
@click.option("--cpus", type=int, default=256, show_default=True)
@click.option("--memory-gib", type=int, default=1024, show_default=True)
@click.option("--patty", is_flag=True, help="Open ports for the tags of running nodes.")
@click.option("--port-range", default="2000-7999", show_default=True, metavar="FIRST-LAST", help="Ports of tags.")
@click.option("--patty-poll-seconds", type=float, default=0.5, show_default=True, help="How often tags are read.")
@click.option("--faults", type=click.Path(path_type=Path, exists=True), help="JSON list of faults in force at start.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of boot times and faults.")
def cml(
    *,
    listen: str,
    username: str,
    password: str,
    tls: bool,
    cert: Path | None,
    key: Path | None,
    version: str,
    state: Path | None,
    access_log: Path | None,
    boot_seconds: tuple[float, float],
    boot: tuple[str, ...],
    boot_speed: float,
    stop_seconds: float,
    console_baud: int,
    latency_ms: float,
    licence_nodes: int,
    cpus: int,
    memory_gib: int,
    patty: bool,
    port_range: str,
    patty_poll_seconds: float,
    faults: Path | None,
    seed: int,
) -> None:
    """Run a simulated Cisco Modeling Labs controller until it is interrupted.

    Beside the API at /api/v0 it serves /sim, for faults, crashes and the access log, without a token:
    listen where only you can reach it.
    """
    host, port = _address(listen)
    first, _, last = port_range.partition("-")
    if not first.isdecimal() or not last.isdecimal() or not int(first) <= int(last) <= LAST_PORT:
        raise click.UsageError(f"--port-range {port_range}: expected FIRST-LAST")
    try:
        settings = Settings(
            username=username,
            password=password,
            version=version,
            boot_seconds=boot_seconds,
            boot_seconds_by_definition=dict(_boot(one) for one in boot),
            boot_speed=boot_speed,
            stop_seconds=stop_seconds,
            console_baud=console_baud,
            seed=seed,
            licence_nodes=licence_nodes,
            cpus=cpus,
            memory_gib=memory_gib,
        )
        simulator = CmlSimulator(
            settings,
            host=host,
            port=port,
            tls=_context(host, tls=tls, cert=cert, key=key),
            state=state,
            access_log=access_log,
            latency_ms=latency_ms,
            patty=PattySettings(int(first), int(last), patty_poll_seconds) if patty else None,
            faults=_plan(faults, Fault),
        )
        asyncio.run(_serve(simulator, f"CML simulator {version}"))
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@sim.command()
@click.option("--listen", default="127.0.0.1:8081", show_default=True, metavar="HOST:PORT", help="Port 0: a free one.")
@click.option(
    "--token",
    default="",
    envvar="VKPROVIDER_SIM_LDS_TOKEN",
    help="Bearer token of clients; or VKPROVIDER_SIM_LDS_TOKEN.",
)
@click.option("--tls", is_flag=True, help="HTTPS with a self-signed certificate.")
@click.option("--cert", type=click.Path(path_type=Path, exists=True), help="Certificate for HTTPS, PEM.")
@click.option("--key", type=click.Path(path_type=Path, exists=True), help="Its key, PEM.")
@click.option("--base-url", metavar="URL", help="URL for users and clients, if not that of --listen.")
@click.option("--capacity", type=click.IntRange(min=0), default=1000, show_default=True, help="Sessions not archived.")
@click.option("--form", "forms", multiple=True, help="A form in its store; repeatable. Default: every form.")
@click.option("--no-client-keys", is_flag=True, help="Make a new session at every create (no extension client-key).")
@click.option("--no-timeslots", is_flag=True, help="Do not let timeslots be changed (no extension timeslot).")
@click.option("--no-owners", is_flag=True, help="Do not record who made a session (no extension owner).")
@click.option("--no-timeslot-end", is_flag=True, help="Do not end sessions with their timeslot.")
@click.option(
    "--target", "targets", multiple=True, metavar="URL", help="URL that events go to; repeatable, used in turn."
)
@click.option("--event-token", default="", envvar="VKPROVIDER_SIM_LDS_EVENT_TOKEN", help="Or that variable.")
@click.option("--event-mode", type=click.Choice(get_args(Mode)), default="structured", show_default=True)
@click.option("--sign-events", is_flag=True, help="Sign events with the event token instead of showing it.")
@click.option(
    "--give-up-seconds", type=float, default=600.0, show_default=True, help="How long delivery of an event is retried."
)
@click.option(
    "--grade", type=click.Choice(get_args(Rule)), default="pass", show_default=True, help="The rule of /grade."
)
@click.option(
    "--grade-checks", type=click.Path(path_type=Path, exists=True), help="JSON list of checks, for that rule."
)
@click.option("--grade-seconds", type=float, default=0.0, show_default=True, help="How long grading takes.")
@click.option(
    "--pass-score",
    type=click.FloatRange(0, 1),
    default=0.7,
    show_default=True,
    help="Part of the full score that passes.",
)
@click.option("--state", type=click.Path(path_type=Path), help="File that keeps the sessions over a restart.")
@click.option("--access-log", type=click.Path(path_type=Path), help="File for one JSON line per request.")
@click.option("--latency-ms", type=float, default=0.0, show_default=True, help="Added to every request.")
@click.option("--faults", type=click.Path(path_type=Path, exists=True), help="JSON list of faults in force at start.")
@click.option(
    "--event-faults", type=click.Path(path_type=Path, exists=True), help="JSON list of event faults in force at start."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of faults, back-off and verdicts.")
def lds(
    *,
    listen: str,
    token: str,
    tls: bool,
    cert: Path | None,
    key: Path | None,
    base_url: str | None,
    capacity: int,
    forms: tuple[str, ...],
    no_client_keys: bool,
    no_timeslots: bool,
    no_owners: bool,
    no_timeslot_end: bool,
    targets: tuple[str, ...],
    event_token: str,
    event_mode: Mode,
    sign_events: bool,
    give_up_seconds: float,
    grade: Rule,
    grade_checks: Path | None,
    grade_seconds: float,
    pass_score: float,
    state: Path | None,
    access_log: Path | None,
    latency_ms: float,
    faults: Path | None,
    event_faults: Path | None,
    seed: int,
) -> None:
    """Run a simulated Lab Delivery System until it is interrupted.

    It has the API at /api/v1, a page for learners at the login URLs, a grader at /grade, and sends CloudEvents to the
    targets. /sim serves faults, acts of learners, and the access log, without a token: listen where
    only you can reach it.
    """
    host, port = _address(listen)
    try:
        simulator = LdsSimulator(
            LdsSettings(
                token=token,
                capacity=capacity,
                client_keys=not no_client_keys,
                owners=not no_owners,
                timeslots=not no_timeslots,
                end_timeslots=not no_timeslot_end,
                forms=forms,
                seed=seed,
            ),
            host=host,
            port=port,
            tls=_context(host, tls=tls, cert=cert, key=key),
            base_url=base_url and base_url.rstrip("/"),
            events=EventSettings(
                targets=targets,
                token=event_token,
                mode=event_mode,
                signed=sign_events,
                give_up_s=give_up_seconds,
                seed=seed,
            ),
            grader=Grader(grade, _plan(grade_checks, Check), pass_score=pass_score, takes_s=grade_seconds, seed=seed),
            state=state,
            access_log=access_log,
            latency_ms=latency_ms,
            faults=_plan(faults, Fault),
            event_faults=_plan(event_faults, EventFault),
        )
        asyncio.run(_serve(simulator, "LDS simulator"))
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _plan(path: Path | None, shape: type[T]) -> tuple[T, ...]:
    """Read a JSON list from a file; an empty list without a file."""
    try:
        return tuple(msgspec.json.decode(path.read_bytes(), type=list[shape])) if path else ()  # type: ignore[valid-type]
    except ValueError as error:
        raise click.ClickException(f"{path}: {error}") from error


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise click.UsageError(f"--listen {listen}: expected HOST:PORT")
    return host.strip("[]"), int(port)


def _boot(text: str) -> tuple[str, tuple[float, float]]:
    name, found, seconds = text.partition("=")
    if not name or not found:
        raise click.UsageError(f"--boot {text}: expected DEFINITION=A[-B], such as alpine=5-20")
    return name, parse_range(seconds)


def _context(host: str, *, tls: bool, cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if cert is not None or key is not None:
        if cert is None or key is None:
            raise click.UsageError("--cert and --key belong together")
        return server_context(cert.read_bytes(), key.read_bytes())
    return server_context(*self_signed(host, dt.datetime.now(dt.UTC))) if tls else None


async def _serve(simulator: CmlSimulator | LdsSimulator, title: str) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with simulator:
        click.echo(f"{title} at {simulator.url}")
        await ended.wait()
