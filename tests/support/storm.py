"""A seeded storm over a sandbox: replicas are killed, paused and restarted, and CML workers fail for moments.

And what gets through it: a kubectl that never waits for long, and questions that are asked until somebody answers.
"""

import http.client
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from tests.support.cluster import Cluster, Refused, listening
from tests.support.waiting import until
from vkprovider.lablet import names
from vkpsandbox import Sandbox

T = TypeVar("T")
ANSWERED_S: Final = 60.0
"""The longest time for which a program that a test asks may not answer."""
EXEC_S: Final = 15.0
"""The longest wait for a command of `exec`; a replica that is paused never answers one."""
DOWN_S: Final = (0.5, 4.0)
"""How long a killed replica stays down."""
NAP_S: Final = 5.0
"""A pause after which a replica may still act: less than the fence, 8 s."""
SLEEP_S: Final = 20.0
"""A pause that is longer than the Lease, 15 s."""
GRACE_S: Final = 10.0
GAP_S: Final = (2.0, 6.0)
"""From one harm to the next."""
MOMENT_S: Final = 5.0
"""The longest that a worker fails at a time."""
WORKER_GAP_S: Final = (MOMENT_S + 1, MOMENT_S + 10)
SILENCES: Final = ("hold", "refuse")
TYPED: Final = frozenset({names.CONSOLE, names.SCREEN})
"""Commands that get input."""
FAULTS: Final = ("status", "drop", "lost_answer")
RATE: Final = 0.3
"""The share of requests that a fault meets."""
FORGETS: Final = "lost_token"
"""All logins end at once, as when CML restarts."""


def sure(look: Callable[[], T]) -> T:
    """Return what a look finds, as soon as those whom it asks answer.

    Raises:
        AssertionError: They do not within a minute.
    """

    def answered() -> tuple[T]:
        try:
            return (look(),)
        except (OSError, http.client.HTTPException, Refused, ValueError) as error:
            raise AssertionError(f"no answer: {error!r}") from error

    return until(answered, ANSWERED_S, every_s=0.3)[0]


class Storm:
    """Does harm until it is told to end; in the end all replicas run, and no worker fails.

    Attributes:
        done: How often each harm was done, by the kind of its victim and the harm.
    """

    def __init__(
        self, cluster: Cluster, replicas: Sequence[str], env: Mapping[str, Mapping[str, str]], seed: int
    ) -> None:
        """Create it.

        Args:
            cluster: The sandbox.
            replicas: Names of the processes.
            env: Further variables of some, by their names.
            seed: Orders what is done, and for how long.
        """
        self._cluster, self._replicas, self._env = cluster, replicas, env
        self._seed = seed
        self._sandbox: Sandbox = cluster.sandbox
        self.done = Counter[tuple[str, str]]()

    def over_replicas(self, over: threading.Event) -> None:
        """Do every harm to every replica, one after the other, and again in another order."""
        dice, left = random.Random(self._seed), list[tuple[str, str]]()
        while not over.wait(dice.uniform(*GAP_S)):
            if not left:
                left = [(process, harm) for process in self._replicas for harm in ("kill", "restart", "nap", "sleep")]
                dice.shuffle(left)
            process, harm = left.pop()
            self.done[process.rstrip("-0123456789"), harm] += 1
            match harm:
                case "nap" | "sleep":
                    self._pause(process, NAP_S if harm == "nap" else SLEEP_S)
                case "kill":
                    self._sandbox.kill(process)
                    time.sleep(dice.uniform(*DOWN_S))
                    self.start(process)
                case _:
                    self._sandbox.stop(process, grace_s=GRACE_S)
                    self.start(process)

    def over_workers(self, over: threading.Event) -> None:
        """Have workers fail in every way, one worker at a time."""
        dice, left = random.Random(self._seed + 1), list[str]()
        while not over.wait(dice.uniform(*WORKER_GAP_S)):
            if not left:
                left = [*SILENCES, *FAULTS, FORGETS]
                dice.shuffle(left)
            how, worker = left.pop(), dice.choice(self._cluster.workers)
            self.done["worker", how] += 1
            if how in SILENCES:
                worker.silence(dice.uniform(1.0, MOMENT_S), how)
            elif how == FORGETS:
                worker.fault(how, count=1)
            else:
                worker.fault(how, rate=RATE, seconds=MOMENT_S, status=503)
        for worker in self._cluster.workers:
            until(lambda worker=worker: listening(worker), ANSWERED_S)  # type: ignore[misc]
            worker.clear_faults()

    def start(self, process: str) -> None:
        """Start a replica that was ended, with its further variables."""
        self._sandbox.start(process, self._env.get(process, {}))

    def _pause(self, process: str, seconds: float) -> None:
        self._sandbox.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self._sandbox.kill(process, signal.SIGCONT)


class Hand:
    """`kubectl exec NAMESPACE/POD -c lab -- …`, which is given up where nobody answers."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._kubectl = str(sandbox.programs / "kubectl")
        layout = sandbox.layout
        self._environ = {**os.environ, "KUBECONFIG": str(layout.kubeconfig), "KUBECACHEDIR": str(layout.kubectl_cache)}

    @contextmanager
    def open(self, pod: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run it while the block runs, with pipes that hold nothing back."""
        namespace, _, name = pod.partition("/")
        typed = ["-i"] if words[0] in TYPED else []
        command = [self._kubectl, f"--namespace={namespace}", "exec", *typed, name, "-c", "lab", "--", *words]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=self._environ)  # noqa: S603 (kubectl)
        try:
            yield process
        finally:
            process.kill()
            for end in (process.stdin, process.stdout, process.stderr):
                if end is not None:
                    end.close()
            process.wait()

    def read(self, pod: str, *words: str, within_s: float = EXEC_S) -> tuple[int | None, bytes, str]:
        """Run it to its end, or until the time is over; return its exit code, None without an end, and what it said."""
        with self.open(pod, *words) as process:
            try:
                out, said = process.communicate(timeout=within_s)
                return process.returncode, out, said.decode(errors="replace")
            except subprocess.TimeoutExpired:
                process.kill()
                out, said = process.communicate()
                return None, out, said.decode(errors="replace")
