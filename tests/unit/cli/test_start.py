"""`kubectl lablet --help` and completion of its commands import nothing that only some command needs."""

import json
import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "asyncio", "kubernetes_asyncio", "msgspec", "pydantic", "structlog", "vkprovider.kube", "yaml")


@pytest.mark.parametrize(
    "call",
    [
        "from vkprovider.cli.lablet import main; main(['--help'], standalone_mode=False)",
        "from vkprovider.cli.lablet.completion import candidates_of; candidates_of(['re'])",
        "from vkprovider.cli.main import COMMANDS, main; main(['--version'], standalone_mode=False)",
    ],
)
def test_start_is_light(call: str) -> None:
    script = f"import json, sys\n{call}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    loaded = set(json.loads(result.stderr.splitlines()[-1]))
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))
    assert "click" in loaded
