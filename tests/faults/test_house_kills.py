"""Everybody is at work while replicas of provider, portal and mux are killed, paused and restarted, and CML fails.

Three replicas of the provider, two of the portal, two of the mux, three simulated workers. For eight minutes (or
`HOUSE_SECONDS`) a storm (`HOUSE_SEED`) does all of `tests/support/storm` to them, while

* `CALM` lablets run (`tests/support/calmlabs`), each with a device that is stopped on request, before the storm or in
  it; packets of their links are captured, each file to its end or cut; screens are looked at, and opened again when
  they stand still; consoles are open through the mux, whose numbers are dialled again;
* learners ask the portal for labs, type at a console, save and end, and begin from what they saved, again and again.

What bounds what, as seen at the API server, at CML and at the other end of each connection:

* nothing lost: each lab begins with the very text that its learner saved last, which has all lines that this learner
  ever typed and none of anybody else (`MADE_S`, `TYPED_S` and `GONE_S` are the longest waits of a round); the packets
  of a file are `EVERY_S` apart; a screen shows a picture again at most `SCREEN_S` after its last one; a console through
  the mux never breaks, answers within `ANSWER_S`, and its number leads to the own device all the time;
* none double: after at most `SETTLE_S` of quiet each Pod has one lab and one claim, no lab or claim is without a Pod,
  no port of a worker or of the mux is given twice, and CML saw one import for each Pod; the packets of a file are in
  order, each once, and in the end CML captures nothing that nobody reads;
* none restarted: all that CML was asked to do to a calm lab is to stop that one device, which is off; its Pod is the
  same, Ready since before the storm and without a restart. No replica logged a trace of an unforeseen error.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.component.portal.site.browsing import Browsing
from tests.faults.test_ports_kills import document
from tests.support.calmlabs import ANSWER_S, STOPPED, CalmLab, calm_topology
from tests.support.cluster import Cluster, is_leaving, is_ready
from tests.support.consoles import ROUTES, person
from tests.support.muxports import MUX
from tests.support.relay import haproxy_or_skip
from tests.support.replicas import Replicas, restarts, since_ready
from tests.support.storm import Hand, Storm, sure
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkprovider.lablet import names
from vkpsandbox import Sandbox, start
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.programs import PROVIDER_GRACE_S, VKPROVIDER
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec, Restart

SECONDS: Final = float(os.environ.get("HOUSE_SECONDS", "480"))
SEED: Final = int(os.environ.get("HOUSE_SEED", "1"))
CALM: Final = 6
"""Lablets; half of them are captured, the others' screens are looked at, and all have a console through the mux."""
LEARNERS: Final = ("ann", "ben", "cara", "dan")
PROVIDERS: Final = ("provider-1", "provider-2", "provider-3")
PORTALS: Final = ("portal-1", "portal-2")
MUXES: Final = ("mux", "mux-2")
SETTLE_S: Final = 120.0
MADE_S: Final = 120.0
TYPED_S: Final = 90.0
GONE_S: Final = 120.0
SCREEN_S: Final = 45.0
"""It is seen to stand still after 10 s; two owners may fail one after the other, and each is followed within 15 s."""
LOCATION: Final = "snmp-server location "
TRACE: Final = re.compile(r'Traceback \(most recent call last\)|"exception": ?\[')


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """All programs as users have them; a second replica of the mux beside the one of the sandbox."""
    haproxy_or_skip()
    with Sandbox.up(
        "house-kills",
        directory=tmp_path_factory.mktemp("house"),
        workers=3,
        replicas=len(PROVIDERS),
        mux=True,
        portals=len(PORTALS),
        worker_args=[["--boot-seconds=1-3"]],
        tied=True,
    ) as made:
        [port] = free_ports(1)
        env: dict[str, str | None] = {
            "KUBECONFIG": str(made.layout.mux / "mux.kubeconfig"),
            "VKPROVIDER_NAMESPACE": NAMESPACE,
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "VKPROVIDER_HTTP_PORT": str(port),
            "LABLET_CONTROLLER_INSTANCE_ID": None,
        }
        how: dict[str, Any] = {"restart": Restart.UNLESS_KILLED, "grace_s": PROVIDER_GRACE_S}
        spec = ProcessSpec(name=MUXES[1], argv=[*VKPROVIDER, "mux"], env=env, url=f"http://127.0.0.1:{port}", **how)
        start.add_process(made.layout, spec)
        yield made


class Learner:
    """Somebody whose labs follow each other, each begun from what the one before it left.

    Attributes:
        typed: All that was typed in them.
        uids: Of their Pods.
    """

    def __init__(self, cluster: Cluster, hand: Hand, name: str) -> None:
        self._cluster, self._hand = cluster, hand
        self.name, self.token = name, person(cluster, name)
        self._portals = itertools.cycle(cluster.sandbox.process(each).url for each in PORTALS)
        self._providers = itertools.cycle(cluster.sandbox.process(each).url for each in PROVIDERS)
        self._namespace, self.pod = f"nublado-{name}", f"nublado-{name}/nb-{name}"
        self.typed, self.uids = list[str](), list[str]()
        self._saved, self._text = "", "hostname r1"

    def work(self, over: threading.Event) -> None:
        """Type, save and end, and begin again; in the end there is a lab."""
        self.begin()
        while not over.is_set():
            self.type()
            self.save_and_end()
            self.begin()

    def begin(self) -> None:
        """Ask until there is a lab; it must have what was saved, to the letter."""
        begun = {"begin_from": [self._saved]} if self._saved else {}
        wish = {"options": {"image_list": ["house:1.0.0"], "size": ["small"], **begun}, "env": {}}

        def ready() -> dict[str, Any]:
            pod = sure(lambda: self._cluster.pod(self._namespace, f"nb-{self.name}"))
            asked = self._ask(next(self._portals), "POST", f"{ROUTES}/labs/{self.name}/create", wish) if not pod else ()
            assert is_ready(pod), (self.name, asked, pod and pod["status"])
            assert pod is not None
            assert not is_leaving(pod)
            return pod

        pod = until(ready, MADE_S, every_s=0.5)
        self.uids.append(pod["metadata"]["uid"])
        assert self.configurations(pod) == [self._text], (self.name, len(self.uids))

    def configurations(self, pod: dict[str, Any]) -> list[str]:
        """Return those of the devices of the lab, as CML has them."""
        worker = self._cluster.simulator_of(pod)
        lab = sure(lambda: worker.lab_of(pod["metadata"]["uid"]))
        assert lab is not None, (self.name, "a Pod that is Ready has no lab")
        return [str(device["configuration"]) for device in sure(lambda: worker.devices(lab["id"]))]

    def type(self) -> None:
        """Type a line at the console, until the device has it."""
        line = f"{LOCATION}{self.name}-{len(self.typed)}"
        self.typed.append(line)
        keys = f"\x1a\renable\rconfigure terminal\r{line}\rend\r".encode()

        def known() -> bool:
            with self._hand.open(self.pod, *names.console_command("r1", take_over=True)) as console:
                assert console.stdin is not None
                with contextlib.suppress(BrokenPipeError):  # it has ended already, and is opened again
                    console.stdin.write(keys)
                return until(lambda: line.encode() in self._hand.read(self.pod, names.CONFIG, "r1")[1], 8, every_s=0.5)

        until(known, TYPED_S, every_s=0.5)

    def save_and_end(self) -> None:
        """Press *Save and end the lab* until a portal takes it; when the lab is gone, all that was typed is kept."""
        pressed = False

        def gone() -> bool:
            nonlocal pressed
            pressed = pressed or asyncio.run(self._press())
            return sure(lambda: self._cluster.get(f"/api/v1/namespaces/{self._namespace}")) is None

        until(gone, GONE_S, f"the lab of {self.name} does not end", every_s=0.5)

        def kept() -> dict[str, Any]:
            status, answer = self._ask(next(self._providers), "GET", f"/archives/{self.uids[-1]}")
            assert status == 200, (self.name, self.uids[-1], status, answer)
            return dict(answer)

        left = until(kept, ANSWER_S + 20, every_s=0.5)
        lines = [line for line in left["configs"].get("r1", "").splitlines() if line.startswith(LOCATION)]
        assert list(dict.fromkeys(lines)) == self.typed, (self.name, left)  # keys that were lost are pressed again
        self._saved, self._text = self.uids[-1], left["configs"]["r1"]

    async def _press(self) -> bool:
        try:
            async with Browsing(next(self._portals)) as browser:
                await browser.log_in({"Authorization": f"Bearer {self.token}"})
                shown = await browser.get(f"/labs/{self.name}")
                if "Save and end the lab" not in shown.text:
                    return False
                return (await browser.post(f"/labs/{self.name}/stop")).status_code == 303
        except httpx.HTTPError:
            return False

    def _ask(self, url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the body of an answer; 0 if there is none."""
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=ANSWER_S)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text


def agree(cluster: Cluster, uids: set[str]) -> bool:
    """Compare Pods, labs, claims and ports: the same lablets everywhere, one of each, and no port twice."""
    pods = {pod["metadata"]["uid"]: pod for pod in cluster.items("/api/v1/pods") if "runtimeClassName" in pod["spec"]}
    assert pods.keys() == uids
    assert all(is_ready(pod) for pod in pods.values())
    for worker in cluster.workers:
        mine = Counter(uid for uid, pod in pods.items() if pod["spec"]["nodeName"] == worker.node)
        labs, rows = worker.labs(), document(cluster, worker)
        assert Counter(lab["lab_title"][-36:] for lab in labs) == mine, worker.name
        assert Counter(row["podUID"] for row in rows["lablets"]) == mine, worker.name
        claimed = Counter(row["port"] for row in rows["portClaims"])
        tags = [tag for lab in labs for device in worker.devices(lab["id"]) for tag in device["tags"]]
        opened = Counter(int(tag.split(":")[1]) for tag in tags if tag.startswith(("serial:", "vnc:")))
        assert claimed == opened == Counter(set(opened)), worker.name
    mux = cluster.get(MUX)
    assert mux is not None
    numbers = [port["port"] for port in mux["spec"]["ports"]]
    assert len(set(numbers)) == len(numbers) == 2 * CALM, numbers
    return True


def at_work(loads: Mapping[str, Callable[[threading.Event], None]], seconds: float) -> None:
    """Run loads for a while, at once; the first that fails ends all others."""
    over, wrong = threading.Event(), list[Exception]()
    with ThreadPoolExecutor(len(loads)) as pool:
        running = {name: pool.submit(load, over) for name, load in loads.items()}
        try:
            wait(running.values(), seconds, FIRST_EXCEPTION)
        finally:
            over.set()
    for name, each in running.items():
        if isinstance(error := each.exception(), Exception):
            error.add_note(f"in the load {name}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup("loads failed", wrong)


def traces_in(log: Path) -> list[str]:
    """Return the lines of a log that have a trace."""
    return [line[:2000] for line in log.read_text(errors="replace").splitlines() if TRACE.search(line)]


def test_nothing_is_lost_doubled_or_restarted_while_everything_dies(cluster: Cluster, replicas: Replicas) -> None:
    hand, sandbox = Hand(cluster.sandbox), cluster.sandbox
    page = {"VKPROVIDER_PORTAL_PROVIDER_URL": sandbox.process(PROVIDERS[0]).url}
    storm = Storm(cluster, [*PROVIDERS, *PORTALS, *MUXES], dict.fromkeys(PORTALS, page), SEED)
    for portal in PORTALS:  # the page is known now
        sandbox.stop(portal)
        storm.start(portal)
    menu = definition("house-lab", topology({"r1": "iosv"}))
    menu["metadata"]["labels"] = {"vkprovider.io/family": "house", "vkprovider.io/size": "small"}
    cluster.define(menu, definition("calm", calm_topology(), expose={"mux": f"labs.{NAMESPACE}"}))
    cluster.apply(deployment("calm", "calm", CALM))
    cluster.delete_later("deployment", "calm")
    calm = [CalmLab(cluster, hand, pod) for pod in cluster.wait_ready("default", CALM)]
    learners = [Learner(cluster, hand, name) for name in LEARNERS]
    ready, ports = since_ready(cluster.pods("default")), [each.port for each in calm]
    marks = {worker.name: worker.last_request() for worker in cluster.workers}

    loads: dict[str, Callable[[threading.Event], None]] = {each.name: each.work for each in learners}
    for number, each in enumerate(calm):
        after_s = SECONDS * max(0, number - CALM // 2) / CALM
        loads |= {f"stop {number}": partial(each.stop, after_s=after_s), f"mux {number}": each.converse}
        loads[f"link or screen {number}"] = partial(each.capture, seed=SEED + number) if number % 2 else each.look
    at_work({**loads, "replicas": storm.over_replicas, "workers": storm.over_workers}, SECONDS)

    began, uids = time.monotonic(), {each.uid for each in calm} | {each.uids[-1] for each in learners}
    until(lambda: replicas.is_balanced() and agree(cluster, uids), SETTLE_S, every_s=1.0)
    settled_s = time.monotonic() - began
    pods = cluster.pods("default")
    assert since_ready(pods) == ready
    assert restarts(pods) == {0}
    assert all(each.is_one_off() for each in calm)
    assert [each.outside_port() for each in calm] == ports
    for each in calm[1::2]:
        until(each.captures_nothing_else, SETTLE_S, every_s=1.0)
    imports = Counter[str]()
    for worker in cluster.workers:
        imports.update(entry["title"][-36:] for entry in worker.access_log(marks[worker.name]) if entry.get("lab"))
        for each in calm:
            asked = each.asked_of_cml(marks[each.worker.name])
            assert asked.keys() == {(STOPPED, "stop")}, (each.name, asked)
    made = [uid for each in learners for uid in each.uids]
    assert set(imports.values()) == {1}, imports
    assert imports.keys() >= set(made)
    traces = {name: traces_in(sandbox.layout.log(name)) for name in (*PROVIDERS, *PORTALS, *MUXES)}
    assert not any(traces.values()), traces

    files, rounds = (
        sum((each.files for each in calm), Counter[str]()),
        {each.name: len(each.typed) for each in learners},
    )
    screens, answered_s = sorted(s for each in calm for s in each.screens), max(each.answered_s for each in calm)
    sys.stdout.write(
        f"{SECONDS:.0f} s, seed {SEED}: {dict(storm.done)}; saved and begun again: {rounds}; captures: {dict(files)}; "
        f"{len(screens)} screens shown again after {', '.join(f'{s:.0f}' for s in screens)} s; the mux answered within "
        f"{answered_s:.1f} s; settled in {settled_s:.0f} s\n"
    )
    assert min(files["whole"], files["cut"], len(screens), *rounds.values()) > 0, "nothing was interrupted or done"
    assert max(screens) <= SCREEN_S, screens
    assert answered_s <= ANSWER_S
