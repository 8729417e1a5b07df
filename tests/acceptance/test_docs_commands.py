"""The pages' own commands, in the order of a platform engineer's life with it: install, connect two CMLs, a first
lablet, maintenance, removal of a worker, uninstall. Nothing is left, and somebody else's labs are untouched.
"""

from pathlib import Path

import pytest

from tests.support import docs
from tests.support.engineer import CONNECT, EXECUTED, FIRST, INSTALL, engineer
from tests.support.waiting import until


@pytest.mark.timeout(600)
def test_life_of_an_installation(tmp_path: Path) -> None:
    with engineer("docs", tmp_path) as here:
        run = here.run
        here.install()
        assert "no faults" in run(INSTALL, "Check")

        run(CONNECT, "Change the password")
        here.cmls["cml-1"].set_password("NEW")
        until(lambda: here.ready_of("cmlworker", "cml-1")["reason"] == "WorkerReady", 90, here.cluster.logs())

        for heading in ("Define it", "Start one", "Start many"):
            run(FIRST, heading)
        run(FIRST, "End them")
        before = here.lablets()
        assert set(before.values()) == {"vnode.cml-1", "vnode.cml-2"}
        assert [len(here.labs(name)) for name in here.cmls] == [2, 2]

        run(CONNECT, "Maintenance")
        assert set(here.lablets().values()) == {"vnode.cml-2"}, "drain moves the lablets of a Deployment"
        assert [len(here.labs(name)) for name in here.cmls] == [0, 4]
        run(CONNECT, "Put it back")
        here.cluster.kubectl("rollout", "restart", "deployment/mylab")
        here.cluster.kubectl("rollout", "status", "deployment/mylab", "--timeout=60s")
        assert set(here.lablets().values()) == {"vnode.cml-1", "vnode.cml-2"}, "it takes lablets again"

        run(CONNECT, "Remove a worker")
        assert set(here.lablets().values()) == {"vnode.cml-1"}
        assert (here.labs("cml-2"), here.cluster.get("node", "vnode.cml-2")) == ([], {})

        run(INSTALL, "Uninstall")
        here.end_provider()
        here.delete_own()
        until(lambda: not here.left(), 90, f"left: {here.left()}")
        assert [here.labs(name) for name in here.cmls] == [[], []]


@pytest.mark.parametrize("page", EXECUTED)
def test_every_block_of_the_pages_is_executed(page: str) -> None:
    assert tuple(dict.fromkeys(block.heading for block in docs.blocks(page))) == EXECUTED[page]


def test_readme_and_page_uninstall_alike() -> None:
    pages = [
        block.text for page in ("README.md", INSTALL) for block in docs.blocks(page) if block.heading == "Uninstall"
    ]
    assert len(pages) == 2
    assert pages[0] == pages[1]
