"""The image, built as the Containerfile says, run as the Deployment says: user, capabilities, read-only root, memory.

A kubelet's part is done by podman. It needs podman and mmdebstrap, and says so where they are missing: the base image
is made of Debian's packages, so that no registry is needed. Debian's mirror and the package index must be reachable.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import containers
from tests.support.containers import IMAGE, ROOT, Contained, podman
from tests.support.hostile_corpus import BOMBS
from tests.support.installation import WORKER, Installation, installed
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig

MIB = 2**20
WRITES = """
import pathlib
for place in ("/", "/opt/vkprovider", "/run", "/var/tmp", "/dev/shm", "/tmp"):
    try:
        (pathlib.Path(place) / "probe").write_bytes(b"x")
        print(place, "written")
    except OSError as error:
        print(place, error.strerror)
"""
PROCESSES = """
import os, pathlib
for home in pathlib.Path("/proc").iterdir():
    if home.name.isdigit() and int(home.name) != os.getpid():
        try:
            words = (home / "cmdline").read_bytes().split(b"\\0")
            limit = [line.split()[3] for line in (home / "limits").read_text().splitlines() if "address space" in line]
            print(home.name, limit[0], b" ".join(words).decode())
        except OSError:
            pass
"""
CONTENT = """
import importlib.metadata, json
print(json.dumps({d.name.lower().replace("_", "-"): d.version for d in importlib.metadata.distributions()}))
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose replicas are containers of the image of this checkout."""
    if why := containers.missing():
        pytest.skip(f"the image is not built here: {why}")
    containers.build()
    with installed("image", tmp_path_factory.mktemp("image"), Contained) as made:
        yield made


def python(replica: Contained, program: str) -> str:
    return podman("exec", replica.name, "/opt/vkprovider/bin/python", "-c", program, check=False)


def replicas(installation: Installation) -> list[Contained]:
    found = [replica for replica in installation.replicas if isinstance(replica, Contained)]
    assert len(found) == 2
    return found


def test_lablets_become_ready_with_the_limits_of_the_deployment(installation: Installation) -> None:
    """Those limits hold: they are read from the process and its cgroup, and tried."""
    installation.apply(definition("contained"))
    installation.apply(deployment("contained", "contained", 4))
    pods = installation.wait_lablets("default", 4)
    assert {pod["spec"]["nodeName"] for pod in pods} == {f"vnode.{WORKER}"}
    for replica in replicas(installation):
        assert [replica.probe(kind) for kind in ("startup", "liveness", "readiness")] == [200, 200, 200]
        status = dict(re.findall(r"^(\w+):\s+(.*)$", replica.run("cat /proc/1/status"), re.MULTILINE))
        assert status["Uid"].split() == status["Gid"].split() == ["65532"] * 4
        assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        written = dict(line.split(" ", 1) for line in python(replica, WRITES).splitlines())
        assert {place for place, said in written.items() if said == "written"} <= {"/tmp", "/dev/shm"}, written  # noqa: S108 (of the container)
        assert written["/"] == written["/opt/vkprovider"] == "Read-only file system"
        settings = json.loads(podman("inspect", "--format={{json .HostConfig}}", replica.name))
        assert settings["Memory"] == settings["MemorySwap"] == 512 * MIB
        used = podman("stats", "--no-stream", "--format={{.MemUsage}}", replica.name).strip()
        print(f"\nreplica {replica.name}: memory {used}")  # noqa: T201 (a figure)
    limit = ("--memory=512m", "--memory-swap=512m")
    greedy = ("--entrypoint=python", IMAGE, "-c", "bytearray(600 << 20); print('more than 512 MiB')")
    killed = podman("run", "--rm", "--network=none", *limit, *greedy, check=False)
    assert "more" not in killed, "the limit of memory does not hold on this machine"


def test_topologies_are_parsed_in_a_process_with_limits(installation: Installation) -> None:
    """A definition is parsed by a child of the replica that leads, a bomb is refused, and the replicas live on."""
    before = {
        replica.name: podman("inspect", "--format={{.State.Pid}}", replica.name) for replica in replicas(installation)
    }
    for number, bomb in enumerate((BOMBS[0], BOMBS[5], "x: " + "[" * 50_000)):
        installation.apply(definition(f"bomb-{number}", bomb))
    installation.apply(definition("beside"))
    until(lambda: installation.get("runtimeclass", "beside"), 60)
    for number in range(3):
        until(lambda number=number: _refused(installation, f"bomb-{number}"), 120, f"bomb-{number}")  # type: ignore[misc]
    children = [
        line
        for replica in replicas(installation)
        for line in python(replica, PROCESSES).splitlines()
        if "parser" in line
    ]
    assert children
    assert all(line.split()[1].isdigit() for line in children), f"without a limit: {children}"
    assert {name: podman("inspect", "--format={{.State.Pid}}", name) for name in before} == before
    installation.kubectl("delete", "labletdefinition", *(f"bomb-{number}" for number in range(3)))


def _refused(installation: Installation, name: str) -> bool:
    conditions = installation.get("labletdefinition", name).get("status", {}).get("conditions", [])
    return any((c["type"], c["status"], c["reason"]) == ("Ready", "False", "TopologyInvalid") for c in conditions)


def test_doctor_of_the_image_finds_no_fault(installation: Installation, tmp_path: Path) -> None:
    """With the limits of the Deployment, as the provider's own account: what that may not read is no fault."""
    kubeconfig = tmp_path / "config"
    token = installation.kubectl("create", "token", "vkprovider", "--namespace=vkprovider-system").strip()
    write_kubeconfig(
        kubeconfig, name="own", cluster=read_cluster(installation.sandbox.kubeconfig), user={"token": token}
    )
    kubeconfig.chmod(0o644)
    [pod, *_] = installation.items(
        "pods", "--namespace=vkprovider-system", "--selector=app.kubernetes.io/name=vkprovider"
    )
    flags = [*containers.limits(pod), "--network=host", f"--volume={kubeconfig}:/kubeconfig:ro"]
    said = podman("run", "--rm", *flags, "--env=KUBECONFIG=/kubeconfig", IMAGE, "doctor", "-o", "json", check=False)
    report = json.loads(said[said.index("{") :])
    faults = [finding for finding in report["findings"] if finding["level"] == "fault"]
    assert faults == [], faults


def test_image_holds_what_is_locked_and_nothing_else() -> None:
    if why := containers.missing():
        pytest.skip(f"the image is not built here: {why}")
    containers.build()
    run = ("run", "--rm", "--network=none", "--read-only", "--entrypoint=python", IMAGE, "-c")
    found = json.loads(podman(*run, CONTENT))
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    ours = found.pop("vkprovider")
    assert found == locked
    [about] = json.loads(podman("inspect", IMAGE))
    assert about["Config"]["User"] == "65532:65532"
    packages = podman("run", "--rm", "--network=none", "--entrypoint=dpkg-query", IMAGE, "--show").splitlines()
    print(f"\nimage: {about['Size'] / 1e6:.0f} MB, user {about['Config']['User']}, vkprovider {ours}")  # noqa: T201 (a figure)
    print(f"{len(found)} distributions: {', '.join(f'{name} {version}' for name, version in sorted(found.items()))}")  # noqa: T201 (a figure)
    print(f"{len(packages)} packages of Debian: {', '.join(' '.join(line.split()) for line in packages)}")  # noqa: T201 (a figure)
