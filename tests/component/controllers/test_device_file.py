"""What `devices.yaml` of a content package changes: the lab in CML, and the devices of the session in the LDS."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition
from tests.support.apiserver import GROUP
from tests.support.topologies import topology
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

TOKEN = "token-of-the-lds"
TOPOLOGY = topology({"pc": "ubuntu", "db": "server"}, {"pc": ["serial:4000"], "db": ["hidden", "serial:4001"]})
FILE = """
- {label: pc, is_user_visible: false, image_definition: desktop-2}
- {label: db, is_user_visible: true}
"""


def package(file: str | None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("cml.yaml", TOPOLOGY)
        if file is not None:
            archive.writestr("devices.yaml", file)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("file", "shown", "image"), [(None, ["pc"], None), (FILE, ["db"], "desktop-2")], ids=["without", "with"]
)
async def test_device_file_reaches_the_lab_and_the_session(
    world: World, tmp_path: Path, file: str | None, shown: list[str], image: str | None
) -> None:
    """R000-069."""
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "lab.zip").write_bytes(package(file))
    await world.replica(
        LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, VKPROVIDER_CONTENT_STORE=f"file://{tmp_path / 'store'}"
    )
    simulator = await world.simulator()
    worker, name = await world.worker(simulator.url), world.name("lab")
    spec = {"source": {"objectStore": {"key": "lab.zip"}}, "formQualifiedName": "exams/basics", "version": "1.0.0"}
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "LabletDefinition", "metadata": {"name": name}}
    await world.admin.create(f"{GROUP}/labletdefinitions", {**body, "spec": spec})
    await world.definition(name, lambda found: condition(found, "Ready")["status"] == "True")
    lablet = await world.pod(name, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    [lab] = simulator.simulation.world.labs.values()
    assert {node.label: node.image_definition for node in lab.nodes.values()} == {"pc": image, "db": None}
    [session] = lds.world.sessions.values()
    assert [device.name for device in session.devices] == shown
