"""What all demos share: a sandbox for the time of one, its parts in turn, and how they tell what they do."""

import inspect
import json
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from vkprovider.platform.messages import listed
from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.tunnels import Tunnel
from vkpsandbox.demo.labs import Labs, require
from vkpsandbox.demo.terminal import DemoError, Terminal
from vkpsandbox.errors import log_tail

BOOTS: Final = ("--boot-seconds=1-2", "--patty-poll-seconds=0.5")
"""Of simulated workers, so that nobody waits long."""
SOON_S: Final = 60.0
"""How long a demo waits for what takes seconds."""
POLL_S: Final = 0.1
TELL_S: Final = 5.0
"""How often a long wait is explained."""
FEW: Final = 3
"""The most items that such an explanation names."""

Say = Callable[[str], None]


class Part(NamedTuple):
    """A part of a demo: its heading, a sentence on why it matters, and what shows it and checks what it shows."""

    heading: str
    why: str
    show: Callable[[], object]

    @classmethod
    def of(cls, *shows: Callable[[], object]) -> "list[Part]":
        """Return parts that are told as they are written: of the docstring, the first line is the heading.

        Raises:
            ValueError: A docstring has no reason after that line.
        """
        parts = []
        for show in shows:
            heading, why = (inspect.getdoc(show) or "").split("\n\n")
            parts.append(cls(heading.removesuffix("."), " ".join(why.split()), show))
        return parts


class Play(NamedTuple):
    """A demo.

    Attributes:
        title: Its first line.
        sandbox: How its sandbox differs from a plain one: arguments of `Sandbox.up`.
        parts: Called when the sandbox is up, for what follows its start.
        again: Called with the same for what to do next, if the sandbox is kept.
    """

    title: str
    sandbox: Mapping[str, Any]
    parts: "Callable[[Stage], list[Part]]"
    again: "Callable[[Stage], str]"


class Stage:
    """A sandbox on which a demo shows its parts.

    Attributes:
        sandbox: The sandbox.
        examples: The directory of the examples.
        say: Prints a line.
        admin: A shell whose commands run as the cluster's admin.
        closing: What ends with the demo, also with one that fails.
    """

    def __init__(self, sandbox: Sandbox, say: Say, closing: ExitStack) -> None:
        self.sandbox, self.say, self.closing = sandbox, say, closing
        self.examples = find_manifests() / "examples"
        self.admin = Terminal(sandbox, sandbox.kubeconfig, Path.cwd())

    def play(self, parts: list[Part]) -> None:
        """Show parts, numbered after the start of the sandbox.

        Raises:
            DemoError: If a check failed.
        """
        for number, part in enumerate(parts, 2):
            self.say(f"\n{number}. {part.heading}\n   {part.why}")
            part.show()

    # ------------------------------------------------------------------------------------------ what is told
    def typed(self, command: str) -> None:
        """Show a command."""
        self.say(f"   $ {command}")

    def printed(self, text: str) -> None:
        """Show what a command or a device printed."""
        self.say(textwrap.indent(text, "   "))

    def table(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print rows in columns."""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.say("   " + "   ".join(cells).rstrip())

    # ------------------------------------------------------------------------------------------ what is done
    def run(self, command: str) -> str:
        """Show a command, run it as admin, and show what it prints; return the latter.

        Raises:
            DemoError: If it fails.
        """
        self.typed(command)
        said = self.admin.run(command).rstrip()
        self.printed(said)
        return said

    def wait(self, remaining: Callable[[], list[str]], what: str, within_s: float = SOON_S) -> float:
        """Wait until nothing remains; return the elapsed seconds.

        Raises:
            DemoError: If something remains after the timeout.
        """
        started = told = time.monotonic()
        while left := remaining():
            now = time.monotonic()
            if now > told + TELL_S:
                told = now
                self.say(f"   waiting for {what} for {now - started:.0f} s: {listed(left, FEW)}")
            if now > started + within_s:
                log = log_tail(self.sandbox.layout.log("provider-1"))
                lines = "\n".join(f"  {item}" for item in left)
                raise DemoError(f"{what}: not after {within_s:.0f} s; still there:\n{lines}\n{log}")
            time.sleep(POLL_S)
        return time.monotonic() - started

    # ------------------------------------------------------------------------------------------ what there is
    @cached_property
    def labs(self) -> Labs:
        """The labs of all workers."""
        return Labs(self.sandbox.workers)

    def get(self, *what: str) -> list[dict[str, Any]]:
        """List objects: arguments of `kubectl get`."""
        found: list[dict[str, Any]] = json.loads(self.sandbox.kubectl("get", *what, "-o", "json").stdout)["items"]
        return found

    def names(self, *what: str) -> list[str]:
        """List the names of objects."""
        return [each["metadata"]["name"] for each in self.get(*what)]

    def lacks(self, what: str, names: Iterable[str]) -> list[str]:
        """List the names that no object of a kind has."""
        there = self.names(what)
        return [name for name in names if name not in there]

    def token(self, account: str, namespace: str) -> str:
        """Return a token of a ServiceAccount."""
        return self.sandbox.kubectl("create", "token", account, f"--namespace={namespace}").stdout.strip()


def tell(play: Play, name: str, *, workers: int, tunnel: Tunnel, download: bool, keep: bool, say: Say) -> None:
    """Run a demo; always end the sandbox, unless it is to be kept.

    Raises:
        DemoError: If a check failed.
        SandboxError: If the sandbox does not come up, or not down.
    """
    require()
    started = time.monotonic()
    say(f"{play.title}\n")
    say("1. Start the control plane, the workers and the provider")
    say("   The programs of Kubernetes are stock; only CML is simulated. Nothing needs root, a container or a licence.")
    sandbox = Sandbox.up(
        name,
        policies=True,
        tunnel=tunnel,
        tied=not keep,
        download=download,
        on_progress=lambda line: say(f"   {line}"),
        **{"workers": workers, **play.sandbox},
    )
    hint = ""
    try:
        with ExitStack() as closing:
            stage = Stage(sandbox, say, closing)
            stage.play(play.parts(stage))
        say(f"\nAll of it held, in {time.monotonic() - started:.0f} s.")
        hint = "; KEEP=1 (or --keep) leaves it running"
    except BaseException:
        if keep:
            say(f"\nThe sandbox {name} is left as it is. {farewell(sandbox)}")
        raise
    finally:
        if not keep:
            sandbox.down()
            say(f"\nThe sandbox {name} is gone{hint}.")
    if keep:
        say(f"\nThe sandbox {name} keeps running. {farewell(sandbox)}\n\n{play.again(stage)}")


def farewell(sandbox: Sandbox) -> str:
    """Return how to use a kept sandbox, and how to end it."""
    return (
        "Use it with\n\n"
        f"  export KUBECONFIG={shlex.quote(str(sandbox.kubeconfig))}\n"
        f"  export PATH={shlex.quote(str(sandbox.programs))}:$PATH\n\n"
        f"and end it with\n\n  {command('sandbox', 'down', '--name', sandbox.name)}"
    )


def command(*arguments: str) -> str:
    """Return a `vkprovider` command line as the reader can type it here."""
    program = Path(sys.executable).parent / "vkprovider"
    return shlex.join([display(program) if program.exists() else "vkprovider", *arguments])


def display(path: Path) -> str:
    """Return a path as it is typed here: below the current directory, it is short."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
