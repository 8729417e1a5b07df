"""A JupyterHub with its proxy in front of the portal of a sandbox, as processes of the sandbox."""

import json
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.portal import HUB, process_name
from vkpsandbox.controlplane.waiting import await_processes
from vkpsandbox.demo.stage import DemoError
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec
from vkpsandbox.start import add_process

PASSWORD: Final = "learning"  # noqa: S105 (of a demo)
SERVICE: Final = "/services/vkprovider"
_CONFIG: Final = """\
import json, os
c = get_config()
here = json.load(open(os.path.join(os.environ["HUB_FOLDER"], "demo.json")))
c.JupyterHub.spawner_class = c.JupyterHub.proxy_class = "vkprovider"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = c.Authenticator.enable_auth_state = True
c.DummyAuthenticator.password = here["password"]
c.JupyterHub.cleanup_servers = c.JupyterHub.cleanup_proxy = False
c.JupyterHub.db_url = f"sqlite:///{os.environ['HUB_FOLDER']}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{os.environ['HUB_FOLDER']}/cookies"
c.JupyterHub.bind_url = here["url"]
c.JupyterHub.hub_port = here["api_port"]
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.services = [{
    "name": "vkprovider", "url": here["portal"], "api_token": here["service"], "oauth_no_confirm": True,
    "oauth_client_allowed_scopes": ["admin:auth_state!user"],
}]
c.JupyterHub.load_roles = [{
    "name": "user", "scopes": ["self", "access:services!service=vkprovider", "admin:auth_state!user"],
}]
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = here["proxy_api"]
c.VkproviderSpawner.service_url = here["portal"]
c.VkproviderSpawner.token_file = f"{os.environ['HUB_FOLDER']}/token"
async def with_token(authenticator, handler, authentication):
    return {**authentication, "auth_state": {"token": here["people"].get(authentication["name"], "")}}
c.Authenticator.post_auth_hook = with_token
def of_class(form):
    return {**form, "class": [here["class"]]}
c.Spawner.options_from_form = of_class
"""


class HubPlan(NamedTuple):
    """What the portal has to know of a hub before there is one.

    Attributes:
        proxy: The port of the proxy, at which people are.
        api: That of the hub.
        proxy_api: That of the proxy's API.
        service: The token of the service that the portal is.
    """

    proxy: int
    api: int
    proxy_api: int
    service: str

    @property
    def url(self) -> str:
        """Where people go."""
        return f"http://127.0.0.1:{self.proxy}"

    def portal_settings(self) -> dict[str, str]:
        """Return the settings of the portal."""
        return {
            "VKPROVIDER_PORTAL_HUB_API_URL": f"http://127.0.0.1:{self.api}/hub/api",
            "VKPROVIDER_PORTAL_HUB_TOKEN": self.service,
        }


def plan_hub() -> HubPlan:
    """Return where a hub will be."""
    proxy, api, proxy_api = free_ports(3)
    return HubPlan(proxy, api, proxy_api, secrets.token_hex(16))


def require_hub() -> Path:
    """Return the environment that has a JupyterHub.

    Raises:
        DemoError: There is none.
    """
    home = Path(sys.prefix) / "hub"
    if not (home / "bin" / "jupyterhub").exists() or not _proxy(home).exists():
        raise DemoError(f"there is no JupyterHub in {home}: in a checkout, make demo HUB=1 installs it (with npm)")
    return home


def start_hub(sandbox: Sandbox, plan: HubPlan, people: Mapping[str, str], class_: str) -> None:
    """Start the hub and its proxy, and wait until both answer.

    Args:
        sandbox: Has a portal with the settings of the plan.
        plan: Where they are.
        people: The token of each person who may log in, by name.
        class_: The class of all labs.

    Raises:
        DemoError: There is no JupyterHub.
        SandboxError: It does not start.
    """
    home, folder = require_hub(), sandbox.layout.hub
    folder.mkdir(mode=0o700)
    config = folder / "jupyterhub_config.py"
    config.write_text(_CONFIG)
    own = sandbox.kubectl("create", "token", HUB, f"--namespace={NAMESPACE}").stdout.strip()
    (folder / "token").write_text(own)
    (folder / "demo.json").write_text(
        json.dumps(
            {
                "url": plan.url,
                "api_port": plan.api,
                "proxy_api": f"http://127.0.0.1:{plan.proxy_api}",
                "portal": sandbox.process(process_name(1)).url,
                "service": plan.service,
                "people": dict(people),
                "password": PASSWORD,
                "class": class_,
            }
        )
    )
    shared = {"CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16)}
    local = ("--ip", "127.0.0.1", "--port", str(plan.proxy), "--api-ip", "127.0.0.1", "--api-port", str(plan.proxy_api))
    errors = ("--error-target", f"http://127.0.0.1:{plan.api}/hub/error")
    hub_env = {"HUB_FOLDER": str(folder), "JUPYTERHUB_CRYPT_KEY": secrets.token_hex(32), **shared}
    hub_argv = [str(home / "bin" / "python"), "-m", "jupyterhub", "-f", str(config)]
    specs = (
        ProcessSpec(name="hub-proxy", argv=[str(_proxy(home)), *local, *errors], env={**shared}, url=plan.url),
        ProcessSpec(name="hub", argv=hub_argv, env={**hub_env}, url=f"http://127.0.0.1:{plan.api}", grace_s=5),
    )
    for spec in specs:
        add_process(sandbox.layout, spec)
    names = [spec.name for spec in specs]
    await_processes(sandbox.layout, names, lambda: _answers(f"{plan.url}/hub/api/"), f"the hub at {plan.url}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (of this machine)
            return bool(answer.status == HTTPStatus.OK)
    except (urllib.error.URLError, OSError):
        return False


def _proxy(home: Path) -> Path:
    return home / "npm" / "node_modules" / ".bin" / "configurable-http-proxy"
