"""The day of a class, as `vkprovider demo --class` lives it: with an LDS, without, and one that goes wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import docs
from tests.support.cluster import Cluster
from vkpsandbox import Sandbox
from vkpsandbox.demo.day import DAY, NAMESPACE
from vkpsandbox.processes.strays import marked

pytestmark = pytest.mark.timeout(500)

COMMAND = (sys.executable, "-P", "-u", "-m", "vkprovider", "demo", "--class")
PAGE = "docs/class.md"


def checked(said: str) -> dict[str, list[str]]:
    """Return the table at the end: whether what was checked after a command holds, by the command's first words."""
    found: dict[str, list[str]] = {}
    for row in re.findall(r"^   (kubectl .*?)   +.*   (yes|NO)$", said, re.MULTILINE):
        found.setdefault(row[0], []).append(row[1])
    return found


def test_day_of_24_with_an_lds(home: Path) -> None:
    result = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=450)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout
    assert re.findall(r"^   \$ (.*)$", said, re.MULTILINE)[1:] == [step.command for step in DAY]
    answers = checked(said)
    assert {word for words in answers.values() for word in words} == {"yes"}
    assert all(any(step.command.startswith(command) for command in answers) for step in DAY), answers
    assert re.search(r"each learner has a grade, the right one +yes$", said, re.MULTILINE)
    assert "The sandbox demo is gone" in said
    assert marked(home / "vkprovider" / "sandboxes" / "demo") == []


def test_day_without_an_lds_and_the_next_class(home: Path) -> None:
    """The last section of the page goes on where the day has ended."""
    command = [*COMMAND, "--no-lds", "--learners=3", "--workers=2", "--keep"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=450)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stdout + result.stderr
    assert {word for words in checked(result.stdout).values() for word in words} == {"yes"}
    sandbox = Sandbox.attach("demo")
    cluster = Cluster(sandbox)
    kubeconfig = str(sandbox.layout.classroom / "kubeconfig")
    environ = {"KUBECONFIG": kubeconfig, "PATH": os.pathsep.join([str(sandbox.programs), os.environ["PATH"]])}
    desk = home / "desk"
    desk.mkdir()
    docs.Reader(desk, environ, {"--replicas=24": "--replicas=3"}).run(PAGE, "The next class")
    free = cluster.wait_ready(NAMESPACE, 3)
    assert not any("vkprovider.io/username" in pod["metadata"]["annotations"] for pod in free)
    sandbox.down()


def test_a_day_that_goes_wrong_says_where(home: Path) -> None:
    """The pool is changed to a definition that there is not, as its lablets are awaited."""
    template = {"spec": {"runtimeClassName": "nothing"}}
    broken = json.dumps({"spec": {"progressDeadlineSeconds": 5, "template": template}})
    command = [*COMMAND, "--no-lds", "--learners=3", "--workers=2", "--name=wrong"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 (ourselves)
        assert process.stdout
        assert process.stderr
        for line in process.stdout:
            if line.startswith("   $ kubectl rollout status"):
                Sandbox.attach("wrong").kubectl("patch", "deployment", "warm", "-n", NAMESPACE, "-p", broken)
                break
        rest, complaint = process.stdout.read(), process.stderr.read()
    assert process.returncode == 1
    assert "NO" in checked(rest)["kubectl rollout status deployment/warm"]
    assert "rollout" in complaint
    assert "warm" in complaint
    assert "Traceback" not in complaint
    assert marked(home / "vkprovider" / "sandboxes" / "wrong") == []
