"""What all demos share: a sandbox for the time of one, how they tell what they do, and how they fail."""

import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from vkprovider.platform.errors import VkproviderError
from vkprovider.platform.messages import listed
from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.tunnels import Tunnel
from vkpsandbox.demo.labs import require
from vkpsandbox.errors import log_tail

POLL_S: Final = 0.1
TELL_S: Final = 5.0
"""How often a long wait is explained."""
FEW: Final = 3
"""The most items that such an explanation names."""

Say = Callable[[str], None]


class DemoError(VkproviderError):
    """A check of the demo failed; the message says which, and what to look at."""


class Narrator:
    """Tells what a demo does on a sandbox, and waits for it."""

    def __init__(self, sandbox: Sandbox, say: Say) -> None:
        self._sandbox = sandbox
        self.say = say

    def head(self, heading: str, why: str) -> None:
        """Begin a step; one sentence says what it shows and why that matters."""
        self.say(f"\n{heading}\n   {why}")

    def typed(self, command: str) -> None:
        """Show a command."""
        self.say(f"   $ {command}")

    def printed(self, text: str) -> None:
        """Show what a command or a device printed."""
        self.say(textwrap.indent(text, "   "))

    def wait(self, remaining: Callable[[], list[str]], within_s: float, what: str) -> float:
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
                log = log_tail(self._sandbox.layout.log("provider-1"))
                lines = "\n".join(f"  {item}" for item in left)
                raise DemoError(f"{what}: not after {within_s:.0f} s; still there:\n{lines}\n{log}")
            time.sleep(POLL_S)
        return time.monotonic() - started

    def table(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print rows in columns."""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.say("   " + "   ".join(cells).rstrip())


class Play(NamedTuple):
    """A demo.

    Attributes:
        title: Its first line.
        files: The examples that it needs.
        sandbox: How its sandbox differs from a plain one: arguments of `Sandbox.up`.
        perform: Called when the sandbox is up, with the directory of the examples; it checks all that it shows.
        again: Called with both for what to do next, if the sandbox is kept.
    """

    title: str
    files: tuple[str, ...]
    sandbox: Mapping[str, Any]
    perform: Callable[[Sandbox, Path, Narrator], None]
    again: Callable[[Sandbox, Path], str]


def tell(play: Play, name: str, *, workers: int, tunnel: Tunnel, download: bool, keep: bool, say: Say) -> None:
    """Run a demo; always end the sandbox, unless it is to be kept.

    Raises:
        DemoError: If a check failed.
        SandboxError: If the sandbox does not come up, or not down.
    """
    examples = find_examples(play.files)
    require()
    refuse_a_second(name)
    started = time.monotonic()
    say(f"{play.title}\n")
    say("1. Start the control plane, the workers and the provider")
    say("   The programs of Kubernetes are stock; only CML is simulated. Nothing needs root, a container or a licence.")
    sandbox = Sandbox.up(
        name,
        workers=workers,
        policies=True,
        tunnel=tunnel,
        tied=not keep,
        download=download,
        on_progress=lambda line: say(f"   {line}"),
        **play.sandbox,
    )
    hint = ""
    try:
        play.perform(sandbox, examples, Narrator(sandbox, say))
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
        say(f"\nThe sandbox {name} keeps running. {farewell(sandbox)}\n\n{play.again(sandbox, examples)}")


def find_examples(files: tuple[str, ...]) -> Path:
    """Return the directory of the examples.

    Raises:
        DemoError: If one of these files is missing.
    """
    examples = find_manifests() / "examples"
    if missing := [name for name in files if not (examples / name).is_file()]:
        raise DemoError(f"{examples} lacks {', '.join(missing)}: reinstall vkprovider, or run it from a checkout")
    return examples


def refuse_a_second(name: str) -> None:
    """Refuse to start in a sandbox that runs, which may be somebody else's; the error says how to start beside it.

    Raises:
        DemoError: If one runs.
    """
    try:
        running = [status for status in Sandbox.attach(name).processes() if status.state == "running"]
    except SandboxError:
        return
    if running:
        beside = command("demo", "--name", f"{name}-2")
        raise DemoError(
            f"a sandbox {name} runs already, and stays as it is; start another one beside it with\n\n  {beside}\n\n"
            f"or with: make demo NAME={name}-2"
        )


def farewell(sandbox: Sandbox) -> str:
    """Print how to use a kept sandbox, and how to end it."""
    return (
        "Use it with\n\n"
        f"  export KUBECONFIG={shlex.quote(str(sandbox.kubeconfig))}\n"
        f"  export PATH={shlex.quote(str(sandbox.programs))}:$PATH\n\n"
        f"and end it with\n\n  {command('sandbox', 'down', '--name', sandbox.name)}"
    )


def command(*arguments: str) -> str:
    """Return a `vkprovider` command line as the reader can type it here."""
    program = Path(sys.executable).parent / "vkprovider"
    return shlex.join([str(display(program)) if program.exists() else "vkprovider", *arguments])


def display(path: Path) -> Path:
    """Shorten a path below the current directory."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
