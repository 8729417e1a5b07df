"""The demo of a class: an instructor's day in ten commands, those of docs/class.md, each checked when it has run."""

import csv
import time
import zipfile
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from vkprovider.platform.messages import count, sentences
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.pki import TEACHER
from vkpsandbox.demo import reach
from vkpsandbox.demo.classroom import Classroom, each, look, unlike
from vkpsandbox.demo.desk import Desk
from vkpsandbox.demo.labs import Labs
from vkpsandbox.demo.learners import NAMES, Exam, answer_of, verdict_on
from vkpsandbox.demo.pods import differences, is_ready, why_not_ready
from vkpsandbox.demo.stage import DemoError, Narrator, Play

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
_SOON_S: Final = 60.0


class Step(NamedTuple):
    """A command of the day.

    Attributes:
        section: The section of docs/class.md where it stands.
        command: As it is typed.
        check: Called with what the command printed, and the class before it; raises DemoError if something is wrong.
        types: What is typed while the command runs.
    """

    section: str
    command: str
    check: Callable[["Day", str, Classroom], None]
    types: str = ""


def day_of_a_class(learners: int, *, lds: bool) -> Play:
    """Return the demo of a class, with a Lab Delivery System or without."""

    def perform(sandbox: Sandbox, examples: Path, narrator: Narrator) -> None:
        day = Day(sandbox, examples, narrator, NAMES[:learners])
        try:
            day.begin()
            for number, step in enumerate(DAY):
                day.go_through(step, begins=number == 0 or DAY[number - 1].section != step.section)
            day.end()
        finally:
            day.sum_up()

    def again(sandbox: Sandbox, _: Path) -> str:
        return f"The instructor's kubeconfig, the hand-out and the work of the class are in {sandbox.layout.classroom}"

    graded = {"lds": True, "lds_args": ["--grade=checks", f"--grade-checks={POINTS}"]} if lds else {}
    return Play(
        f"A class of {learners}: an instructor's day in {len(DAY)} commands, with{'' if lds else 'out'} an LDS.",
        ("netlab.yaml", "pool.yaml"),
        {"worker_args": [["--boot-seconds=1-2"]], **graded},
        perform,
        again,
    )


class Day:
    """The day, on a sandbox that is up."""

    def __init__(self, sandbox: Sandbox, examples: Path, narrator: Narrator, learners: tuple[str, ...]) -> None:
        self._sandbox, self._tell, self._learners = sandbox, narrator, learners
        self._desk = Desk(sandbox, TEACHER, NAMESPACE)
        self._desk.lay_out(examples, learners)
        self._labs = Labs(sandbox.workers)
        self._exam = Exam(sandbox.lds) if sandbox.lds else None
        self._checked: list[tuple[str, str, str]] = [("COMMAND", "CHECKED AFTER IT", "HOLDS")]

    # ---------------------------------------------------------------------------- how it goes
    def begin(self) -> None:
        """Let an admin make the teacher an instructor of the namespace, who has no other right."""
        self._tell.head("2. An admin makes a user an instructor", WHY["The namespace"])
        self._sandbox.kubectl("create", "namespace", NAMESPACE)
        self._sandbox.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=baseline")
        self._run(GRANT, kubeconfig=self._sandbox.kubeconfig)
        for right in FORBIDDEN:
            answer = self._desk.run(f"kubectl auth can-i {right} 2>&1 || true").strip().splitlines()[-1]
            self._holds(GRANT, f"{TEACHER} may not {right}", [] if answer == "no" else [answer])

    def go_through(self, step: Step, *, begins: bool) -> None:
        """Run a command and check what it has done; `begins` says whether a section of the day does with it."""
        if begins:
            number = 3 + list(WHY).index(step.section) - 1
            self._tell.head(f"{number}. {step.section}", WHY[step.section])
        before = self._look()
        said = "" if step.command == WATCH else self._run(step.command, types=step.types)
        step.check(self, said, before)

    def end(self) -> None:
        """Wait until nothing is left."""
        self._wait(
            "At the end", "no lablet is left", lambda: [str(pod["metadata"]["name"]) for pod in self._look().free]
        )
        self._wait("At the end", "no lab is left in CML", self._labs.left)

    def sum_up(self) -> None:
        """Print all that was checked."""
        self._tell.say("")
        self._tell.table(self._checked)

    # ---------------------------------------------------------------------------- the checks
    def defined(self, said: str, _: Classroom) -> None:
        """Check that the definition works, and that its trial is gone."""
        self._holds(DEFINE, "a lab of the file has booted", [] if "booted in" in said else [said])
        self._holds(DEFINE, "the trial is gone", self._labs.left())

    def applied(self, _: str, __: Classroom) -> None:
        """Check that the pool is as large as the class."""
        self._holds(APPLY, "the pool is as large as the class", self._unlike_replicas(len(self._learners)))

    def rolled_out(self, _: str, __: Classroom) -> None:
        """Check that each lablet of the pool is free and has a lab."""
        free = self._look().free
        waiting = [f"{pod['metadata']['name']} {why_not_ready(pod)}" for pod in free if not is_ready(pod)]
        number = [] if len(free) == len(self._learners) else [f"there are {len(free)}"]
        self._holds(ROLLOUT, "there is a Ready lablet for each learner", [*waiting, *number])
        self._holds(ROLLOUT, "each has one started lab, on its Node's worker", differences(free, self._labs.read()))

    def assigned(self, _: str, __: Classroom) -> None:
        """Check that each learner has a lablet, and that nothing changes when it is run again."""
        now, learners = self._look(), self._learners
        self._holds(ASSIGN, "each learner has a lablet", unlike(each(learners, "one"), each(now.given, "one")))
        ready = {learner: is_ready(pod) for learner, pod in now.given.items()}
        self._holds(ASSIGN, "it is Ready at once", unlike(dict.fromkeys(learners, True), ready))
        self._holds(ASSIGN, "their time ends at 16:00", unlike(each(self._learners, self._desk.ends), now.ends))
        self._holds(ASSIGN, "the pool has 0 replicas", self._unlike_replicas(0))
        self._wait(ASSIGN, "the hand-out has a way to each lab", self._without_access)
        again = self._look()
        changed = [*unlike(now.uids, again.uids), *unlike(now.ends, again.ends), *self._unlike_replicas(0)]
        self._holds(ASSIGN, "nothing changes when it is run again", changed)
        pods = list(again.given.values())
        self._wait(ASSIGN, "each has one lab, and there is no other", lambda: differences(pods, self._labs.read()))
        if self._exam:
            self._answer(self._exam, again)

    def listed(self, said: str, _: Classroom) -> None:
        """Check that the list says of each learner whether they work."""
        states = {row[0]: row[1] for row in self._rows(said)}
        state = "working" if self._exam else "ready"
        self._holds(LIST, f"each learner is {state}", unlike(each(self._learners, state), states))

    def extended(self, _: str, before: Classroom) -> None:
        """Check that everybody has more time."""
        wanted = {learner: end + _MORE for learner, end in before.ends.items()}
        self._holds(EXTEND, "each learner has 15 minutes more", unlike(wanted, self._look().ends))

    def watched(self, _: str, before: Classroom) -> None:
        """Watch what all learners type."""
        self._tell.typed(WATCH)
        title = f"{count(len(self._learners), 'console')} of {DEVICE}"
        with self._desk.watching(WATCH) as screen:
            self._tell.wait(lambda: [] if title in screen() else [title], _SOON_S, "consoles")
            for learner, pod in before.given.items():
                worker = next(one for one in self._sandbox.workers if one.node == pod["spec"]["nodeName"])
                host, port = reach.host_of(worker), reach.consoles(pod)[DEVICE]
                if not host:
                    self._tell.say(f"   left out: {worker.name} has no address of its own here, and opens no ports")
                    return
                reach.type_at(host, port, f"echo work of {learner}")

            def unseen() -> list[str]:
                return [learner for learner in self._learners if f"| work of {learner}" not in screen()]

            self._wait(WATCH, "it shows what each learner types", unseen)
            self._show("\n".join(line for line in screen().splitlines() if "| work of " in line))

    def wiped(self, _: str, before: Classroom) -> None:
        """Check that one lab was wiped, and that its learner keeps it."""
        self._wait(RESET, "the lab of bob was wiped, and no other", lambda: self._unlike_wipes(before, "bob"))

        def not_ready() -> list[str]:
            return [learner for learner, pod in self._look().given.items() if not is_ready(pod)]

        self._wait(RESET, "it has booted again", not_ready)
        now = self._look()
        changed = [*unlike(before.uids, now.uids), *unlike(before.labs, now.labs)]
        self._holds(RESET, "each learner keeps their lablet and lab", changed)

    def collected(self, said: str, _: Classroom) -> None:
        """Check that each learner is in the table, with a grade if there is a grader."""
        told = {row[0]: " ".join(row[1:3]) if self._exam else "" for row in self._rows(said)}
        wanted = {learner: verdict_on(learner) if self._exam else "" for learner in self._learners}
        self._holds(
            COLLECT,
            "each learner has a grade, the right one" if self._exam else "each learner is named",
            unlike(wanted, told),
        )

    def packed(self, _: str, __: Classroom) -> None:
        """Check that there is a folder for each learner, with what the learner did."""
        with zipfile.ZipFile(self._desk.home / "friday.zip") as archive:
            files = {name: archive.read(name).decode() for name in archive.namelist()}
        folders = each({name.partition("/")[0] for name in files}, "one")
        self._holds(CONFIGS, "there is a folder for each learner", unlike(each(self._learners, "one"), folders))
        wrong = [f"{one}/h0.cfg" for one in self._learners if "hostname h0" not in files.get(f"{one}/{DEVICE}.cfg", "")]
        self._holds(CONFIGS, "the configurations are there", wrong)
        if self._exam:
            mute = [one for one in self._learners if answer_of(one) not in files.get(f"{one}/responses.json", "")]
            self._holds(CONFIGS, "the answers are there", mute)

    # ---------------------------------------------------------------------------- what they share
    def _look(self) -> Classroom:
        return look(self._sandbox, NAMESPACE, POOL)

    def _run(self, command: str, *, kubeconfig: Path | None = None, types: str = "") -> str:
        """Show a command and what it prints; return the latter."""
        self._tell.typed(command)
        started = time.monotonic()
        try:
            said = self._desk.run(command, kubeconfig=kubeconfig, types=types)
        except DemoError:
            self._checked.append((_in_short(command), "it ends well", "NO"))
            raise
        if said:
            self._show(said)
        self._tell.say(f"   after {time.monotonic() - started:.1f} s")
        return said

    def _show(self, said: str) -> None:
        lines = [line if len(line) <= _WIDTH_MAX else f"{line[:_WIDTH_MAX]}…" for line in said.splitlines()]
        if len(lines) > _SHOWN_MAX + 1:
            lines = [*lines[:_SHOWN_MAX], f"… and {len(lines) - _SHOWN_MAX} lines more"]
        self._tell.printed("\n".join(lines))

    def _holds(self, command: str, what: str, faults: Iterable[str]) -> None:
        """Note what was checked.

        Raises:
            DemoError: There are faults.
        """
        found = list(faults)
        self._checked.append((_in_short(command), what, "NO" if found else "yes"))
        if found:
            raise DemoError(f"after `{command}` this does not hold: {what}. {sentences(found, _FAULTS_MAX)}")

    def _wait(self, command: str, what: str, remaining: Callable[[], list[str]]) -> None:
        """Wait until something holds, and note it."""
        try:
            self._tell.wait(remaining, _SOON_S, f"“{what}”")
        except DemoError:
            self._checked.append((_in_short(command), what, "NO"))
            raise
        self._holds(command, what, [])

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
        with (self._desk.home / "hand-out.csv").open(newline="") as file:
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

        self._wait(ASSIGN, "each learner logs in, and is seen to work", idle)


def _in_short(command: str) -> str:
    """Return a command without its options, as a table has room for it."""
    words = command.split()
    first = next((at for at, word in enumerate(words) if word.startswith(("-", ">"))), len(words))
    return " ".join(words[:first])


GRANT: Final = f"kubectl lablet grant {TEACHER} -n friday"
DEFINE: Final = "kubectl lablet define netlab.yaml --try"
APPLY: Final = "kubectl apply -f pool.yaml"
ROLLOUT: Final = "kubectl rollout status deployment/warm --timeout=40m"
ASSIGN: Final = "kubectl lablet assign deployment/warm --from-file names.csv --until 16:00 -o csv >hand-out.csv"
LIST: Final = "kubectl lablet list"
EXTEND: Final = "kubectl lablet extend --all --by 15m"
WATCH: Final = "kubectl lablet console --watch -l class=friday h0"
RESET: Final = "kubectl lablet reset -u bob"
COLLECT: Final = "kubectl lablet collect -l class=friday --wait"
CONFIGS: Final = "kubectl lablet configs --all --zip friday.zip"
DAY: Final = (
    Step("Before", DEFINE, Day.defined),
    Step("Before", APPLY, Day.applied),
    Step("Before", ROLLOUT, Day.rolled_out),
    Step("At the start", ASSIGN, Day.assigned),
    Step("Meanwhile", LIST, Day.listed),
    Step("Meanwhile", EXTEND, Day.extended),
    Step("Over their shoulders", WATCH, Day.watched),
    Step("Over their shoulders", RESET, Day.wiped, types="y\n"),
    Step("At the end", COLLECT, Day.collected, types="y\n"),
    Step("At the end", CONFIGS, Day.packed),
)
"""The day, as docs/class.md has it."""
WHY: Final = {
    "The namespace": "It is the only command of an admin. The instructor has no other right than those that it gives.",
    "Before": "A lab as CML exports it becomes a pool of lablets, which boot before anybody comes.",
    "At the start": "Each learner of a list gets a lablet, and a row in the hand-out.",
    "Meanwhile": "The instructor names learners, not Pods.",
    "Over their shoulders": "The learners work at their consoles, without a right in Kubernetes or an account of CML.",
    "At the end": "Their work is collected and graded; then the labs are removed.",
}
"""Why each section of the day matters."""
