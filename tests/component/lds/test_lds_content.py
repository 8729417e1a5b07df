"""New content is announced to every deployment of the LDS, whatever comes of it (R000-080)."""

import asyncio
from pathlib import Path

import yaml
from structlog.testing import capture_logs

from tests.component.lds.conftest import Say, ScriptedLds
from vkprovider.labs.controllers.definition.packages import LdsContent
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.kube.queue import KeyedQueue

PATH = "POST /{}/api/v1/content/refresh"
REFRESHED = {"form_qualified_name": "exams/netlab", "version": "2", "refreshed_at": "2026-03-01T08:00:00Z"}


async def test_each_deployment_is_told_and_one_that_fails_stops_no_other(lds: ScriptedLds, tmp_path: Path) -> None:
    file = tmp_path / "lds_deployments.yaml"
    entries = [{"id": name, "base_url": f"{lds.url}/{name}", "capacity": 10, "priority": 1} for name in ("a", "b")]
    file.write_text(yaml.safe_dump({"lds_deployments": entries}))
    lds.say(PATH.format("a"), Say(503, {"code": "Down", "message": "down"}))
    lds.say(PATH.format("b"), Say(200, REFRESHED))
    deployments = Deployments(LdsSettings(path=str(file)))
    forms: KeyedQueue[str] = KeyedQueue(name="lds-content", workers=1)
    content = LdsContent(deployments, forms)
    queue = asyncio.create_task(forms.run(content.refresh))
    with capture_logs() as logs:
        content.changed("exams/netlab")
        assert await forms.drain(30)
    logged = {line["deployment"]: (line["event"], line["log_level"]) for line in logs if "deployment" in line}
    assert logged == {"a": ("lds did not refresh", "warning"), "b": ("lds refreshed", "info")}
    assert forms.failures_total == 0
    queue.cancel()
    await asyncio.wait([queue])
    await deployments.close()
    lds.exchanges.clear()  # these base URLs have a path, and the protocol knows no prefix


async def test_without_an_lds_nothing_is_announced() -> None:
    forms: KeyedQueue[str] = KeyedQueue(name="lds-content", workers=1)
    content = LdsContent(None, forms)
    content.changed("exams/netlab")
    assert forms.depth == 0
