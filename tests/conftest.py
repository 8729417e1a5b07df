"""What all tests share: one sandbox, one API server, and what a failed test left behind."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support import again, record, skips
from tests.support import apiserver as real
from tests.support.cluster import Cluster
from tests.support.lds import LdsSide
from tests.support.sandboxes import started
from tests.support.unclosed import name_sessions
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.build import ensure_programs
from vkpsandbox.controlplane.tunnels import Tunnel

HOME = Path(__file__).parent

WORKERS = (
    ("--boot-seconds=0.3-1", "--boot=iosv=8", "--boot=csr1000v=30", "--version=2.9.1+build.7"),
    ("--boot-seconds=0.3-1", "--boot=iosv=8", "--boot=csr1000v=30", "--version=2.9.1+build.7"),
    ("--boot-seconds=0.3-1", "--boot=iosv=8", "--boot=csr1000v=30", "--version=2.8.1+build.14"),
)
"""Arguments of the three simulated workers: hosts boot within a second, `iosv` slowly, `csr1000v` so slowly that its
lablet reports progress twice meanwhile: the second time is 15 s after the first."""

SETTINGS = {"WORKER_PROBE_SECONDS": "1", "LAB_START_TIMEOUT": "60", "RECONCILE_INTERVAL": "5"}
"""Of the provider, so that tests need not wait long. None waits for LAB_START_TIMEOUT; it leaves `csr1000v` time."""

_SHARED = pytest.StashKey[ExitStack]()
"""What the component tests of a process share."""

_FOLDERS = ("unit", "component", "simulators", "cluster", "acceptance", "faults")
"""In the order in which they run."""

_CLUSTER_TIMEOUT_S = 300
"""Of a cluster test without a limit of its own: the first one of a process starts the sandbox, in steps of up to 180 s,
and waits one after the other may together take longer than 120 s beside other processes. Each wait has its own limit,
and says what did not come; the limit of the test says nothing."""

_ON_CONTROL_PLANES = ("cluster", "acceptance")
"""Folders whose tests need the programs of the control plane."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run of the tests marked `tunnelled` choose how workers are reached, and `make test` run failures again."""
    again.add_option(parser)
    record.add_option(parser)
    skips.add_option(parser)
    parser.addoption("--tunnel", choices=get_args(Tunnel), default="direct", help="how sandboxes reach their workers")


def pytest_configure(config: pytest.Config) -> None:
    """Run what failed once more, if that is asked for; record what files cost; fail for skips that no list allows.

    `nohup`, shells without job control and some CI start a run with SIGINT ignored, and programs inherit that, so that
    those of tests would not take Ctrl-C. A handler that does nothing ignores it as well, and is not inherited.
    """
    name_sessions()
    config.stash[_SHARED] = ExitStack()
    record.configure(config)
    skips.configure(config)
    again.configure(config, f"--tunnel={config.getoption('--tunnel')}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _ignore)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass


def pytest_sessionstart() -> None:
    """Keep plugins that ask for the current event loop from creating one, which nobody would close (Python 3.11)."""
    asyncio.set_event_loop(None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """End the API server of component tests, which come first, before a test that has a whole cluster."""
    if item.path.is_relative_to(HOME / "cluster"):
        item.config.stash[_SHARED].close()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane before the first test: it takes minutes once, which no test's timeout allows for."""
    config = session.config
    if config.option.collectonly or not any(_needs_control_plane(item) for item in session.items):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    try:
        ensure_programs(lambda line: reporter.write_line(line) if reporter else None)
    except SandboxError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def _needs_control_plane(item: pytest.Item) -> bool:
    return item.get_closest_marker("cluster") is not None or "apiserver" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the control plane, and time, by where it stands, and put files in the order in which they run.

    Quick answers come first. Of the cluster tests, files with a sandbox of their own come before those that share one,
    and folders, which take longest, before them: no process has two at a time for long, and the files that are left in
    the end are short.
    """
    for item in items:
        if any(item.path.is_relative_to(HOME / folder) for folder in _ON_CONTROL_PLANES):
            item.add_marker(pytest.mark.cluster)
        if item.path.is_relative_to(HOME / "cluster") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_CLUSTER_TIMEOUT_S))
    sharing = {item.path for item in items if _shares_sandbox(item)}
    places = {HOME / name: number for number, name in enumerate(_FOLDERS)}
    items.sort(key=lambda item: (_place(item, places), item.path in sharing, not _is_in_room(item.path)))


def _shares_sandbox(item: pytest.Item) -> bool:
    own = hasattr(getattr(item, "module", None), "sandbox") or _is_in_room(item.path)
    return "sandbox" in getattr(item, "fixturenames", ()) and not own


def _is_in_room(path: Path) -> bool:
    """Return whether a file stands in a folder of the cluster tests: all of such a folder use one sandbox."""
    return path.parent.parent == HOME / "cluster"


def stays_together(nodeid: str) -> str:
    """Return the file of a test, or the folder of the cluster tests in which that file stands."""
    path = HOME.parent / nodeid.partition("::")[0]
    return str((path.parent if _is_in_room(path) else path).relative_to(HOME.parent))


class _ByRoom(LoadFileScheduling):  # type: ignore[misc]
    """Gives each process whole files, as `--dist loadfile` does, and whole folders of the cluster tests."""

    def _split_scope(self, nodeid: str) -> str:
        return stays_together(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep what uses one sandbox in one process."""
    return _ByRoom(config, log) if config.getvalue("dist") == "loadfile" else None


def _place(item: pytest.Item, places: Mapping[Path, int]) -> int:
    return next((number for folder, number in places.items() if item.path.is_relative_to(folder)), len(places))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what a failed cluster test left."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        try:
            report.sections.append((f"the cluster after {report.when}", cluster.describe()))
        except (SandboxError, OSError) as error:
            report.sections.append(("the cluster", f"cannot be asked: {error}"))
    return report


@pytest.fixture(scope="session")
def tunnel(request: pytest.FixtureRequest) -> Tunnel:
    """How the provider reaches the workers of a sandbox; those of `make tunnelled` are told by an option."""
    way: Tunnel = request.config.getoption("--tunnel")
    return way


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory, tunnel: Tunnel) -> Iterator[Sandbox]:
    """One sandbox for all cluster tests: three simulated workers, one provider replica, an audit log.

    Workers 1 and 3 are in `zone-a`, 2 in `zone-b`; 1 and 2 are CML 2.9.1, 3 is 2.8.1.
    """
    directory = tmp_path_factory.mktemp("sandbox")
    with started(
        "tests",
        directory,
        workers=len(WORKERS),
        audit=True,
        provider_env=SETTINGS,
        worker_args=WORKERS,
        tunnel=tunnel,
    ) as made:
        yield made


@pytest.fixture(scope="session")
def apiserver(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.ApiServer]:
    """etcd and kube-apiserver with our CRDs, RBAC and policies; about 5 s, once per process of tests.

    They end before the first cluster test of the process: idle ones of four processes take half a core.
    """
    with pytestconfig.stash[_SHARED] as stack:
        yield stack.enter_context(real.running(tmp_path_factory.mktemp("apiserver")))


@pytest.fixture
def cluster(sandbox: Sandbox) -> Iterator[Cluster]:
    """The sandbox as a test uses it; healed at the end of the test."""
    cluster = Cluster(sandbox)
    yield cluster
    cluster.heal()


@pytest.fixture
def lds(sandbox: Sandbox) -> Iterator[LdsSide]:
    """The LDS of a sandbox that has one; its faults end with the test."""
    assert sandbox.lds is not None
    side = LdsSide(sandbox.lds)
    yield side
    side.clear_faults()


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test; at its end it must become empty."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:50].strip("-")
    name = cluster.create_namespace(stem)
    yield name
    cluster.delete_namespace(name)


@pytest.fixture
async def kube(sandbox: Sandbox) -> AsyncIterator[KubeClient]:
    """The project's own client, as admin."""
    client = await KubeClient.connect(KubeSettings(kubeconfig=str(sandbox.kubeconfig)))
    yield client
    await client.close()
