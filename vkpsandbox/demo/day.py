"""The demo of a class: an instructor's day in ten commands, those of docs/class.md, each checked when it has run."""

import csv
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from vkprovider.platform.messages import count, sentences
from vkpsandbox.controlplane.pki import TEACHER, token_of
from vkpsandbox.demo import consoles
from vkpsandbox.demo.classroom import NAMES, Classroom, Exam, answer_of, each, look, unlike, verdict_on
from vkpsandbox.demo.labs import differences, is_ready, why_not_ready
from vkpsandbox.demo.stage import BOOTS, Part, Play, Stage
from vkpsandbox.demo.terminal import DemoError, Terminal, person

NAMESPACE: Final = "friday"
POOL: Final = "warm"
DEVICE: Final = "h0"
POINTS: Final = Path(__file__).with_name("points.json")
"""What earns points, for the grader of the simulated Lab Delivery System."""
FORBIDDEN: Final = ("list pods -n default", "get secrets", "list configmaps -n vkprovider-system", "list nodes")
_MORE: Final = timedelta(minutes=15)
_WIDTH_MAX: Final = 136
"""A line that is longer is shown in part."""
_SHOWN_MAX: Final = 4
"""The most lines of a command's output that are shown."""
_FAULTS_MAX: Final = 3
_BEGINS: Final = 10
"""The hour in which the class begins."""


_Check = Callable[["Day", str, Classroom], None]


class Step(NamedTuple):
    """A command of the day.

    Attributes:
        section: The section of docs/class.md where it stands.
        command: As it is typed.
        types: What is typed while the command runs.
        check: Called with what the command printed, and the class before it; raises DemoError if something is wrong.
    """

    section: str
    command: str
    types: str
    check: _Check


DAY: Final[list[Step]] = []
"""The day, as docs/class.md has it: the methods of `Day` that `after` marks, in their order."""
WHY: Final = {
    "The namespace": "It is the only command of an admin. The instructor has no other right than those that it gives.",
    "Before": "A lab as CML exports it becomes a pool of lablets, which boot before anybody comes.",
    "At the start": "Each learner of a list gets a lablet, and a row in the hand-out.",
    "Meanwhile": "The instructor names learners, not Pods.",
    "Over their shoulders": "The learners work at their consoles, without a right in Kubernetes or an account of CML.",
    "At the end": "Their work is collected and graded; then the labs are removed.",
}
"""Why each section of the day matters."""
GRANT: Final = f"kubectl lablet grant {TEACHER} -n friday"
ASSIGN: Final = "kubectl lablet assign deployment/warm --from-file names.csv --until 16:00 -o csv >hand-out.csv"
WATCH: Final = "kubectl lablet console --watch -l class=friday h0"


def after(section: str, command: str, types: str = "") -> Callable[[_Check], _Check]:
    """Make a method what checks a command of the day."""

    def mark(check: _Check) -> _Check:
        DAY.append(Step(section, command, types, check))
        return check

    return mark


def day_of_a_class(learners: int, *, lds: bool) -> Play:
    """Return the demo of a class, with a Lab Delivery System or without."""
    graded = {"lds": True, "lds_args": ["--grade=checks", f"--grade-checks={POINTS}"]} if lds else {}
    return Play(
        f"A class of {learners}: an instructor's day in {len(DAY)} commands, with{'' if lds else 'out'} an LDS.",
        {"worker_args": [BOOTS], **graded},
        lambda stage: Day(stage, NAMES[:learners]).parts(),
        lambda stage: (
            "The instructor's kubeconfig, the hand-out and the work of the class are in "
            f"{stage.sandbox.layout.classroom}"
        ),
    )


class Day:
    """The day, on a sandbox that is up; at its end, all that was checked is printed."""

    def __init__(self, stage: Stage, learners: tuple[str, ...]) -> None:
        self._stage, self._learners = stage, learners
        now = datetime.now(UTC)
        ahead_h = _BEGINS - now.hour
        self._until = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=16 - ahead_h)
        token = token_of(stage.sandbox.layout.pki, TEACHER)
        self._desk = person(stage.sandbox, TEACHER, token, namespace=NAMESPACE, TZ=f"HERE{-ahead_h}")
        self._exam = Exam(stage.sandbox.lds) if stage.sandbox.lds else None
        self._checked = [("COMMAND", "CHECKED AFTER IT", "HOLDS")]
        stage.closing.callback(self._sum_up)

    def parts(self) -> list[Part]:
        """Return what is shown: the sections of the page, the last of which ends when nothing is left."""
        granted, *whys = WHY.items()
        days = [list(steps) for _, steps in groupby(DAY, lambda step: step.section)]
        return [
            Part("An admin makes a user an instructor", granted[1], self._grant),
            *(Part(*why, partial(self._go_through, steps)) for why, steps in zip(whys, days, strict=True)),
        ]

    # ---------------------------------------------------------------------------- how it goes
    def _grant(self) -> None:
        """Lay out what an instructor begins with; let an admin make the teacher one, who has no other right."""
        examples, home = self._stage.examples, self._desk.home
        definition = yaml.safe_load((examples / "netlab.yaml").read_text())
        (home / "netlab.yaml").write_text(definition["spec"]["source"]["inline"])  # a lab as CML exports it
        pool = (examples / "pool.yaml").read_text()
        (home / "pool.yaml").write_text(pool.replace("replicas: 24\n", f"replicas: {len(self._learners)}\n"))
        (home / "names.csv").write_text("\n".join(self._learners) + "\n")
        self._stage.admin.run(f"kubectl create namespace {NAMESPACE}")
        self._stage.admin.run(f"kubectl label namespace {NAMESPACE} pod-security.kubernetes.io/enforce=baseline")
        self._run(GRANT, self._stage.admin)
        for right in FORBIDDEN:
            answer = self._desk.run(f"kubectl auth can-i {right}", codes=(0, 1)).strip().splitlines()[-1]
            self._holds(f"{TEACHER} may not {right}", [] if answer == "no" else [answer])

    def _go_through(self, steps: list[Step]) -> None:
        """Run the commands of a section, and check after each what it has done; after the last, what is left."""
        for step in steps:
            before = self._look()
            said = self._run(step.command, types=step.types)
            step.check(self, said, before)
        if steps[-1] is DAY[-1]:
            self._command = "At the end"
            self._wait("no lablet is left", lambda: self._stage.names("pods", f"--namespace={NAMESPACE}"))
            self._wait("no lab is left in CML", self._stage.labs.left)

    def _sum_up(self) -> None:
        """Print all that was checked."""
        self._stage.say("")
        self._stage.table(self._checked)

    # ---------------------------------------------------------------------------- the checks
    @after("Before", "kubectl lablet define netlab.yaml --try")
    def defined(self, said: str, _: Classroom) -> None:
        """Check that the definition works, and that its trial is gone."""
        self._holds("a lab of the file has booted", [] if "booted in" in said else [said])
        self._holds("the trial is gone", self._stage.labs.left())

    @after("Before", "kubectl apply -f pool.yaml")
    def applied(self, _: str, __: Classroom) -> None:
        """Check that the pool is as large as the class."""
        self._holds("the pool is as large as the class", self._unlike_replicas(len(self._learners)))

    @after("Before", "kubectl rollout status deployment/warm --timeout=40m")
    def rolled_out(self, _: str, __: Classroom) -> None:
        """Check that each lablet of the pool is free and has a lab."""
        free = self._look().free
        waiting = [f"{pod['metadata']['name']} {why_not_ready(pod)}" for pod in free if not is_ready(pod)]
        number = [] if len(free) == len(self._learners) else [f"there are {len(free)}"]
        self._holds("there is a Ready lablet for each learner", [*waiting, *number])
        self._holds("each has one started lab, on its Node's worker", differences(free, self._stage.labs.read()))

    @after("At the start", ASSIGN)
    def assigned(self, _: str, __: Classroom) -> None:
        """Check that each learner has a lablet, and that nothing changes when it is run again."""
        now, learners = self._look(), self._learners
        self._holds("each learner has a lablet", unlike(each(learners, "one"), each(now.given, "one")))
        ready = {learner: is_ready(pod) for learner, pod in now.given.items()}
        self._holds("it is Ready at once", unlike(dict.fromkeys(learners, True), ready))
        self._holds("their time ends at 16:00", unlike(each(self._learners, self._until), now.ends))
        self._holds("the pool has 0 replicas", self._unlike_replicas(0))
        self._wait("the hand-out has a way to each lab", self._without_access)
        again = self._look()
        changed = [*unlike(now.uids, again.uids), *unlike(now.ends, again.ends), *self._unlike_replicas(0)]
        self._holds("nothing changes when it is run again", changed)
        pods = list(again.given.values())
        self._wait("each has one lab, and there is no other", lambda: differences(pods, self._stage.labs.read()))
        if self._exam:
            self._answer(self._exam, again)

    @after("Meanwhile", "kubectl lablet list")
    def listed(self, said: str, _: Classroom) -> None:
        """Check that the list says of each learner whether they work."""
        states = {row[0]: row[1] for row in self._rows(said)}
        state = "working" if self._exam else "ready"
        self._holds(f"each learner is {state}", unlike(each(self._learners, state), states))

    @after("Meanwhile", "kubectl lablet extend --all --by 15m")
    def extended(self, _: str, before: Classroom) -> None:
        """Check that everybody has more time."""
        wanted = {learner: end + _MORE for learner, end in before.ends.items()}
        self._holds("each learner has 15 minutes more", unlike(wanted, self._look().ends))

    @after("Over their shoulders", WATCH)
    def watched(self, _: str, before: Classroom) -> None:
        """Watch what all learners type."""
        with self._desk.watching(WATCH) as screen:
            self._stage.wait(lambda: screen.lacks(f"{count(len(self._learners), 'console')} of {DEVICE}"), "consoles")
            for learner, pod in before.given.items():
                worker = next(one for one in self._stage.sandbox.workers if one.node == pod["spec"]["nodeName"])
                host, port = consoles.host_of(worker), consoles.ports(pod)[DEVICE]
                if not host:
                    self._stage.say(f"   left out: {worker.name} has no address of its own here, and opens no ports")
                    return
                consoles.type_at(host, port, f"echo work of {learner}")

            def unseen() -> list[str]:
                return [learner for learner in self._learners if f"| work of {learner}" not in screen.text]

            self._wait("it shows what each learner types", unseen)
            self._show("\n".join(line for line in screen.text.splitlines() if "| work of " in line))

    @after("Over their shoulders", "kubectl lablet reset -u bob", types="y\n")
    def wiped(self, _: str, before: Classroom) -> None:
        """Check that one lab was wiped, and that its learner keeps it."""
        self._wait("the lab of bob was wiped, and no other", lambda: self._unlike_wipes(before, "bob"))

        def not_ready() -> list[str]:
            return [learner for learner, pod in self._look().given.items() if not is_ready(pod)]

        self._wait("it has booted again", not_ready)
        now = self._look()
        changed = [*unlike(before.uids, now.uids), *unlike(before.labs, now.labs)]
        self._holds("each learner keeps their lablet and lab", changed)

    @after("At the end", "kubectl lablet collect -l class=friday --wait", types="y\n")
    def collected(self, said: str, _: Classroom) -> None:
        """Check that each learner is in the table, with a grade if there is a grader."""
        told = {row[0]: " ".join(row[1:3]) if self._exam else "" for row in self._rows(said)}
        wanted = {learner: verdict_on(learner) if self._exam else "" for learner in self._learners}
        self._holds(
            "each learner has a grade, the right one" if self._exam else "each learner is named",
            unlike(wanted, told),
        )

    @after("At the end", "kubectl lablet configs --all --zip friday.zip")
    def packed(self, _: str, __: Classroom) -> None:
        """Check that there is a folder for each learner, with what the learner did."""
        with zipfile.ZipFile(self._desk.home / "friday.zip") as archive:
            files = {name: archive.read(name).decode() for name in archive.namelist()}
        folders = each({name.partition("/")[0] for name in files}, "one")
        self._holds("there is a folder for each learner", unlike(each(self._learners, "one"), folders))
        wrong = [f"{one}/h0.cfg" for one in self._learners if "hostname h0" not in files.get(f"{one}/{DEVICE}.cfg", "")]
        self._holds("the configurations are there", wrong)
        if self._exam:
            mute = [one for one in self._learners if answer_of(one) not in files.get(f"{one}/responses.json", "")]
            self._holds("the answers are there", mute)

    # ---------------------------------------------------------------------------- what they share
    def _look(self) -> Classroom:
        return look(self._stage.sandbox, NAMESPACE, POOL)

    def _run(self, command: str, terminal: Terminal | None = None, *, types: str = "") -> str:
        """Show a command of the instructor, or of another terminal, and what it prints; return the latter.

        That which watches goes on until its check has seen enough.
        """
        self._command = command
        self._stage.typed(command)
        if command == WATCH:
            return ""
        started = time.monotonic()
        with self._noted("it ends well"):
            said = (terminal or self._desk).run(command, types=types)
        if said:
            self._show(said)
        self._stage.say(f"   after {time.monotonic() - started:.1f} s")
        return said

    def _show(self, said: str) -> None:
        lines = [line if len(line) <= _WIDTH_MAX else f"{line[:_WIDTH_MAX]}…" for line in said.splitlines()]
        if len(lines) > _SHOWN_MAX + 1:
            lines = [*lines[:_SHOWN_MAX], f"… and {len(lines) - _SHOWN_MAX} lines more"]
        self._stage.printed("\n".join(lines))

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Note what holds if the block does not fail."""
        self._checked.append((_in_short(self._command), what, "NO"))
        yield
        self._checked[-1] = (*self._checked[-1][:2], "yes")

    def _holds(self, what: str, faults: Iterable[str]) -> None:
        """Note what was checked.

        Raises:
            DemoError: There are faults.
        """
        with self._noted(what):
            if found := list(faults):
                wrong = sentences(found, _FAULTS_MAX)
                raise DemoError(f"after `{self._command}` this does not hold: {what}. {wrong}")

    def _wait(self, what: str, remaining: Callable[[], list[str]]) -> None:
        """Wait until something holds, and note it."""
        with self._noted(what):
            self._stage.wait(remaining, f"“{what}”")

    def _rows(self, said: str) -> list[list[str]]:
        """Return the words of the lines that begin with a learner."""
        rows = [line.split() for line in said.splitlines()]
        return [row for row in rows if row and row[0] in self._learners]

    def _unlike_replicas(self, wanted: int) -> list[str]:
        found = self._look().replicas
        return [] if found == wanted else [f"deployment/{POOL} has replicas: {found} instead of {wanted}"]

    def _unlike_wipes(self, before: Classroom, learner: str) -> list[str]:
        """List by what the labs that were wiped since differ from that of one learner."""
        now = self._look().wipes
        since = {lab: now[lab] - before.wipes.get(lab, 0) for lab in now if now[lab] != before.wipes.get(lab, 0)}
        return unlike({before.labs[learner]: 1}, since)

    def _without_access(self) -> list[str]:
        """List the learners whose row of a new hand-out has no way to the lab; that of a login has its secret part."""
        self._desk.run(ASSIGN)
        with (self._desk.home / "hand-out.csv").open(encoding="utf-8-sig", newline="") as file:
            ways = {row["learner"]: row["access"] for row in csv.DictReader(file)}
        begin, has = (self._exam.url, "?") if self._exam else (f"{DEVICE} serial ", ":")
        found = {learner for learner, way in ways.items() if way.startswith(begin) and has in way}
        return [learner for learner in self._learners if learner not in found]

    def _answer(self, exam: Exam, now: Classroom) -> None:
        """Let the learners work, and wait until the provider knows."""
        sessions = exam.sessions()
        for learner, uid in now.uids.items():
            exam.work(sessions[uid], learner)

        def idle() -> list[str]:
            return unlike(each(self._learners, "RUNNING"), self._look().states)

        self._wait("each learner logs in, and is seen to work", idle)


def _in_short(command: str) -> str:
    """Return a command without its options, as a table has room for it."""
    words = command.split()
    first = next((at for at, word in enumerate(words) if word.startswith(("-", ">"))), len(words))
    return " ".join(words[:first])
