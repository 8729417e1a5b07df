"""A workbench beside a lab on an ordinary Node: a learner works in it, and attacks on it and from it are refused.

The portal runs as Pods, kube-router enforces the policies of the network, and homes come from a CSI driver.
"""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from tests.node.test_node_installed import from_the_node, intruder, opened
from tests.support import csidriver, ordinary
from tests.support import workbenches as support
from tests.support.browser import browser
from tests.support.extra import SYSTEM
from tests.support.ordinary import Ordinary
from tests.support.waiting import until
from tests.support.workbenches import CLASS, PORT, at_node, create_lab, ready_workbench, within
from vkprovider.portal.pure.benchpod import BenchUser, bench_pod_spec
from vkprovider.portal.pure.workbench import WorkbenchConfig
from vkpsandbox.node import needs, room
from vkpsandbox.node.components import PIDS_MAX

pytestmark = [pytest.mark.skipif(bool(why := ordinary.missing()), reason=why), pytest.mark.timeout(1500)]

BENCH_PORT: Final = 8888
METADATA: Final = "169.254.169.254"
"""Where clouds answer their nodes."""
CONNECT: Final = """
import os
from pyats.topology import loader
device = loader.load("testbed.yaml").devices["r1"]
device.connect(log_stdout=False)
print(os.environ.get("SEAT"), os.environ.get("SITE"), device.execute("show version"))
"""
SHOWN: Final = "Cisco IOS Software, IOSv Software"
LISTENER: Final = """
import socket, sys, time
held = socket.create_server(("0.0.0.0", int(sys.argv[1])))
time.sleep(3600)
"""
BOMB: Final = """
import os, signal, time
made = []
try:
    while len(made) < 100_000:
        pid = os.fork()
        if not pid:
            time.sleep(60)
            os._exit(0)
        made.append(pid)
except OSError as error:
    print(len(made), error.strerror)
time.sleep(5)
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""
SEND: Final = """
import json, os, ssl, sys, urllib.error, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
trusted = ssl.create_default_context(cafile=account + "ca.crt")
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
headers = {"Authorization": "Bearer " + open(account + "token").read(), "Content-Type": "application/json"}
def send(method, path, body):
    data = json.dumps(body).encode() if body is not None else None
    try:
        request = urllib.request.Request(url + path, data, headers, method=method)
        return urllib.request.urlopen(request, timeout=30, context=trusted).status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
print(json.dumps([send(*each) for each in json.load(sys.stdin)]))
"""
"""Sends requests to the API server with the token of its Pod, and prints their status and what is said."""
HOSTILE: Final = """
async function attack(portal) {
  const got = {};
  const attempt = async (name, act) => {
    try { got[name] = await Promise.race([act(), new Promise((_, no) => setTimeout(no, 5000, "nothing"))]); }
    catch (error) { got[name] = null; }
  };
  const cross = {credentials: "include", mode: "cors"};
  await attempt("read", async () => (await fetch(portal + "/labs/alice", cross)).text());
  await attempt("user", async () => (await fetch(portal + "/nublado/spawner/v1/user-status", cross)).text());
  await attempt("posted", async () => (await fetch(portal + "/labs/alice/stop",
    {...cross, method: "POST", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "yes=1"})).status);
  await attempt("blind", async () => {
    await fetch(portal + "/labs/alice/stop", {credentials: "include", mode: "no-cors", method: "POST"});
    return null; });
  await attempt("cookies", async () => document.cookie.includes("vkprovider") ? document.cookie : null);
  await attempt("socket", () => new Promise((yes, no) => {
    const socket = new WebSocket(portal.replace("https", "wss") + "/labs/alice/consoles/r1/stream");
    socket.onopen = () => yes("open"); socket.onerror = no; }));
  await attempt("frame", () => new Promise((yes, no) => {
    const frame = document.createElement("iframe");
    frame.src = portal + "/labs/alice";
    frame.onload = () => { try { yes(frame.contentDocument.body.innerText); } catch (error) { no(error); } };
    document.body.append(frame); }));
  await attempt("form", () => new Promise((yes) => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: portal + "/labs/alice/stop", target: "sink"});
    const sink = Object.assign(document.createElement("iframe"), {name: "sink"});
    document.body.append(sink, form); form.submit(); setTimeout(yes, 3000, null); }));
  return got;
}
"""
"""What hostile HTML tries against a portal, with what it gets; null is nothing."""
CELL: Final = """
const [code, done] = arguments;
(async () => {
  const {id} = await (await fetch("/api/kernels", {method: "POST", body: "{}"})).json();
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/kernels/${id}/channels`);
  const msg_id = "one";
  let text = "";
  socket.onmessage = ({data}) => {
    const message = JSON.parse(data);
    if (message.parent_header.msg_id !== msg_id) return;
    text += message.content.text || (message.content.traceback || []).join("\\n");
    if (message.msg_type === "status" && message.content.execution_state === "idle") done(text);
  };
  socket.onerror = () => done("no socket");
  socket.onopen = () => socket.send(JSON.stringify({channel: "shell", parent_header: {}, metadata: {}, buffers: [],
    header: {msg_id, msg_type: "execute_request", username: "", session: "s", version: "5.3", date: new Date()},
    content: {code, silent: false, store_history: false, user_expressions: {}, allow_stdin: false}}));
})().catch((error) => done(String(error)));
"""
"""Runs a cell in a new kernel, as a page of the workbench does, and returns what it prints."""
Json = dict[str, Any]


def row(attack: str, figure: str) -> None:
    print(f"| {attack} | {figure} |")  # noqa: T201 (figures of `make node`)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordinary]:
    """An installation of everything with workbenches, with a worker, and the labs of alice, of a class, and of bob."""
    folder = tmp_path_factory.mktemp("node")
    with ordinary.ordinary("node-workbench", folder, [ordinary.archive(folder)]) as made:
        made.sandbox.load(ordinary.workbench_archive(folder, made.sandbox.programs / "kubectl"))
        support.install_with_workbenches(made)
        began = time.monotonic()
        create_lab(made, "alice", **{"class": [CLASS]})
        create_lab(made, "bob")
        for user in ("alice", "bob"):
            ready_workbench(made, user)
        row("lab and workbench, two at once", f"Ready {time.monotonic() - began:.0f} s after the request")
        yield made


def pod_of(made: Ordinary, user: str) -> Json:
    return made.get("pod", f"nb-{user}-workbench", f"--namespace=nublado-{user}")


def test_a_notebook_connects_to_a_router_by_unicon(made: Ordinary) -> None:
    cell: Json = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": CONNECT}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    words = (
        "jupyter",
        "nbconvert",
        "--stdin",
        "--to=notebook",
        "--execute",
        "--stdout",
        "--ExecutePreprocessor.timeout=120",
    )
    done = json.loads(within(made, "alice", *words, text=json.dumps(notebook)))
    printed = "".join(line for each in done["cells"][0]["outputs"] for line in each.get("text", ()))
    assert SHOWN in printed, done


def test_its_network_is_what_its_policy_allows(made: Ordinary) -> None:
    node, bob = made.node, pod_of(made, "bob")["status"]["podIP"]
    stranger = intruder(made)
    [(worker, api)] = node.worker_endpoints(1)
    allowed = f"{node.workers.rpartition('.')[0]}.200"  # in a network that may be connected to, and no worker's
    at_node(made, "ip", "address", "add", f"{METADATA}/32", "dev", "lo")
    there = [needs.find_program("nsenter"), f"--target={room.pid_of(made.sandbox.layout)}", "--net"]
    with ExitStack() as stack:
        stack.enter_context(socket.create_server((allowed, 7000)))
        cloud = subprocess.Popen([*there, "python3", "-c", LISTENER, "80"])  # noqa: S603 (of the test)
        stack.callback(cloud.wait)
        stack.callback(cloud.kill)
        until(lambda: from_the_node(made, {METADATA: [(80, 81)]}), 20, "nobody listens")
        one = {
            bob: BENCH_PORT,
            node.address: 10250,
            node.host: 6443,
            METADATA: 80,
            allowed: 7000,
            support.portal_address(made): PORT,
        }
        assert from_the_node(made, {bob: [(BENCH_PORT, BENCH_PORT + 1)]}) == {(bob, BENCH_PORT)}
        targets = {host: [(port, port + 1)] for host, port in one.items()}
        seen = opened(made, stranger, {**targets, worker: [(2000, 8000), (api, api + 1)]})
        consoles = {(host, port) for host, port in seen if host == worker}
        assert len(consoles) >= 3, seen  # one of each lab, and the API
        assert seen - consoles == set(one.items()) - {(bob, BENCH_PORT)}, "a Pod without a policy reaches them"
        again = {**targets, worker: [(port, port + 1) for _, port in consoles]}
        reached = opened(made, pod_of(made, "alice"), again)
    row("another learner's workbench", f"{len(reached & {(bob, BENCH_PORT)})} of 1 port")
    row("consoles and API of a worker", f"{len(reached & consoles)} of {len(consoles)} ports that any Pod reaches")
    refused = [(node.address, 10250), (METADATA, 80), (support.portal_address(made), PORT)]
    row(
        "kubelet, cloud's metadata, portal",
        f"{len(reached & set(refused))} of {len(refused)} ports that any Pod reaches",
    )
    assert reached == {(allowed, 7000), (node.host, 6443)}


def test_another_learner_is_not_let_in(made: Ordinary) -> None:
    host = {"Host": f"alice.{support.BENCH_DOMAIN}:{PORT}"}
    bearer = {"Authorization": f"Bearer {support.token_of(made, 'bob')}"}
    pod = pod_of(made, "alice")
    direct = f"http://{pod['status']['podIP']}:{BENCH_PORT}/api/contents"
    answers = {
        "without a cookie": support.send(made, "GET", "/api/contents", host)[0],
        "by the own token": support.send(made, "GET", "/api/contents", {**host, **bearer})[0],
        "by a guess": support.send(made, "GET", "/.vkprovider/enter/" + "a" * 43, host)[0],
        "by the lab's page": support.ask(made, "GET", "/labs/alice", bearer["Authorization"].removeprefix("Bearer "))[
            0
        ],
        "from the node": int(at_node(made, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", direct)),
    }
    row(
        "another learner, at the portal and past it",
        f"{sum(each < 400 for each in answers.values())} of {len(answers)}",
    )
    assert set(answers.values()) <= {401, 403, 404}, answers


def test_its_token_opens_the_consoles_of_its_lab_alone(made: Ordinary) -> None:
    tries = (
        "exec nb-alice-workbench -- true",
        "-n nublado-bob exec nb-bob -c lab -- console r1",
        "-n nublado-bob exec nb-bob-workbench -- true",
        f"-n {SYSTEM} exec deployment/vkprovider-portal -- true",
        "get secrets",
        "get pods",
        "get pods --all-namespaces",
        "delete pod nb-alice",
        "create token nb-alice-workbench",
        "annotate pod nb-alice a=b",
        "get --raw /api/v1/nodes/node-1/proxy/pods",
        "get --raw /api/v1/namespaces/nublado-alice/pods/nb-alice-workbench/proxy/",
    )
    program = "".join(f"kubectl {words} >/dev/null 2>&1 && echo '{words}'\n" for words in tries)
    control = "kubectl get pod nb-alice >/dev/null && echo control\n"
    said = within(made, "alice", "sh", "-c", f"{program}{control}true").splitlines()
    row(
        "the stolen token of a workbench",
        f"{len(said) - 1} of {len(tries)} other deeds: exec, Secrets, lists, deletion",
    )
    assert said == ["control"]


def test_the_portals_token_makes_no_pod_but_a_workbench_that_is_listed(made: Ordinary) -> None:
    kind = WorkbenchConfig.model_validate(support.config(made)["workbenches"][support.KIND])
    name, own = "nb-bob-workbench", "/api/v1/namespaces/nublado-bob/pods?dryRun=All"
    labels = {"vkprovider.io/workbench": "true", "vkprovider.io/portal": SYSTEM}

    def body(**changed: Any) -> Json:
        spec = bench_pod_spec(kind, "", BenchUser("bob", 1000, 1000))
        [box] = spec["containers"]
        box |= changed.pop("box", {})
        spec["volumes"] += changed.pop("more", [])
        return {"metadata": {"name": name, "labels": labels}, "spec": {**spec, **changed}}

    host = {"name": "host", "hostPath": {"path": "/"}}
    csi = {"name": "other", "csi": {"driver": "other.example.com"}}
    secrets = "/api/v1/namespaces/kube-system/secrets"
    thefts = [
        ("POST", own, body(box={"image": "docker.io/library/busybox"})),
        ("POST", own, body(more=[host])),
        ("POST", own, body(more=[csi])),
        ("POST", own, body(hostNetwork=True)),
        ("POST", own, body(nodeName=made.node.name)),
        ("POST", own, body(securityContext={"runAsUser": 0})),
        ("POST", own, body(box={"securityContext": {"privileged": True}})),
        ("POST", f"/api/v1/namespaces/{CLASS}/pods?dryRun=All", body()),
        ("GET", secrets, None),
        ("POST", f"/api/v1/namespaces/nublado-bob/pods/{name}/exec?command=true&stdout=true", None),
    ]
    portal = made.items("pods", f"--namespace={SYSTEM}", "--selector=app.kubernetes.io/name=vkprovider-portal")[0]
    where = ("--stdin", portal["metadata"]["name"], f"--namespace={SYSTEM}", "--", "python3", "-c", SEND)
    said = json.loads(made.kubectl("exec", *where, input=json.dumps([("POST", own, body()), *thefts])))
    (control, why), *answers = said
    assert control == 409, why  # it passes all policies, and is there already
    allowed = [each for each in answers if each[0] != 403]
    row(
        "the stolen token of the portal",
        f"{len(allowed)} of {len(thefts)}: images that are not listed, the host, Secrets",
    )
    assert not allowed
    assert "images of workbenches" in answers[0][1]


def test_symlinks_in_a_home_lead_nowhere_on_the_node(made: Ordinary) -> None:
    victim, home = "/var/lib/homes-victim", f"{csidriver.HOMES}/alice"
    at_node(made, "sh", "-c", f"echo secret >{victim} && chmod 600 {victim}")
    links = {
        "victim": victim,
        "shadow": "/etc/shadow",
        "bob": "../bob",
        "homes": csidriver.HOMES,
        "kubelet": "/var/lib/kubelet",
    }
    within(made, "alice", "sh", "-c", " && ".join(f"ln -sfn {to} {name}" for name, to in links.items()))
    read = within(
        made, "alice", "sh", "-c", f"for each in {' '.join(links)}; do cat $each/* $each 2>/dev/null; done; true"
    )
    at_node(made, "chgrp", "root", home)  # so that the kubelet gives what is in the home to its group once more
    before, uid = at_node(made, "stat", "-c", "%u:%g %a", victim), pod_of(made, "alice")["metadata"]["uid"]
    made.kubectl("delete", "pod", "nb-alice-workbench", "--namespace=nublado-alice")

    def made_again() -> bool:
        found = pod_of(made, "alice")
        return bool(found) and found["metadata"]["uid"] != uid

    until(made_again, 120, "no new workbench", every_s=1)
    ready_workbench(made, "alice")
    assert within(made, "alice", "readlink", "victim").strip() == victim  # the home is the same
    after = at_node(made, "stat", "-c", "%u:%g %a", victim)
    row(
        "symlinks in a home, to files of the node and another home",
        f"{len(read)} bytes read; owner and mode stay {after.strip()}",
    )
    assert (read, after) == ("", before)


def test_a_fork_bomb_is_held_by_the_kubelet(made: Ordinary) -> None:
    with_bomb = ("exec", "nb-bob-workbench", "--namespace=nublado-bob", "--", "python3", "-c", BOMB)
    kubectl = [str(made.sandbox.programs / "kubectl"), f"--kubeconfig={made.sandbox.kubeconfig}"]
    bomb = subprocess.Popen([*kubectl, *with_bomb], stdout=subprocess.PIPE, text=True)  # noqa: S603 (of the test)
    time.sleep(4)
    began = time.monotonic()
    assert within(made, "alice", "echo", "lives") == "lives\n"
    took_s = time.monotonic() - began
    said, _ = bomb.communicate(timeout=120)
    count, _, why = said.strip().partition(" ")
    row("a fork bomb", f"{count} processes, then “{why}”; a neighbour answers in {took_s:.1f} s")
    assert 100 < int(count) < PIDS_MAX
    until(lambda: within(made, "bob", "echo", "lives"), 30)


def seen(driver: Chrome, css: str, within_s: float = 240) -> Any:
    """Return the first element that a selector names, once it can be used."""

    def found(_: Chrome) -> Any:
        return next((each for each in driver.find_elements(By.CSS_SELECTOR, css) if each.is_displayed()), None)

    wait = WebDriverWait(driver, within_s, poll_frequency=0.2, ignored_exceptions=[WebDriverException])
    return wait.until(found, f"{css}: {driver.find_element(By.TAG_NAME, 'body').text}")


def log_in(driver: Chrome, token: str, path: str = "/") -> None:
    driver.get(f"https://{support.PORTAL_HOST}:{PORT}/login?next={path}")
    seen(driver, "#token").send_keys(token)
    seen(driver, "main form button").click()


def open_workbench(driver: Chrome, user: str) -> None:
    """Press the button of the lab's page, and wait until JupyterLab is there."""
    seen(driver, "button[formaction$='/workbench']").click()
    there = f"https://{user}.{support.BENCH_DOMAIN}:{PORT}/"
    wait = WebDriverWait(driver, 120, poll_frequency=0.2, ignored_exceptions=[WebDriverException])
    wait.until(lambda page: page.current_url.startswith(there) and "Jupyter" in page.title, driver.current_url)


def hosts(made: Ordinary) -> dict[str, str]:
    return dict.fromkeys((support.PORTAL_HOST, f"*.{support.BENCH_DOMAIN}"), support.portal_address(made))


def test_a_learner_in_a_browser_runs_a_cell_at_the_workbenchs_own_origin(made: Ordinary) -> None:
    token, began = support.token_of(made, "carol"), time.monotonic()
    with browser(logs=True, hosts=hosts(made)) as driver:
        log_in(driver, token)
        Select(seen(driver, "#lab-image")).select_by_value("asked:1.0.0")
        for name, text in {"SEAT": "7", "SITE": "campus-2"}.items():
            seen(driver, f"input[name$='{name}']").send_keys(text)
        driver.find_element(By.XPATH, "//button[.='Start the lab']").click()
        seen(driver, "button[formaction$='/workbench']")
        took_s = time.monotonic() - began
        open_workbench(driver, "carol")
        driver.set_script_timeout(180)
        printed = driver.execute_async_script(CELL, CONNECT)
        assert SHOWN in printed, printed
        assert f"7 campus-2 {SHOWN}" in printed, printed
    row(
        "a learner in Chromium",
        f"login, two fields, lab and workbench Ready: {took_s:.0f} s; with a cell: {time.monotonic() - began:.0f} s",
    )


def test_hostile_html_that_an_instructor_opens_gets_nothing_of_the_portal(made: Ordinary) -> None:
    portal, lab = f"https://{support.PORTAL_HOST}:{PORT}", made.get("pod", "nb-alice", "--namespace=nublado-alice")
    run = f'attack("{portal}").then((got) => {{ document.title = "got " + JSON.stringify(got); }});'
    html = f"<!doctype html><title>wait</title><body><script>{HOSTILE}{run}</script>"
    within(made, "alice", "sh", "-c", "cat >hostile.html", text=html)
    with browser(logs=True, hosts=hosts(made)) as driver:
        log_in(driver, support.token_of(made, "ida"), "/labs/alice")
        open_workbench(driver, "alice")
        driver.set_script_timeout(120)
        origin = driver.execute_async_script(f"const done = arguments[0]; {HOSTILE} attack('{portal}').then(done);")
        driver.get(f"https://alice.{support.BENCH_DOMAIN}:{PORT}/files/hostile.html")
        WebDriverWait(driver, 90).until(lambda page: page.title.startswith("got "), driver.title)
        file = json.loads(driver.title.removeprefix("got "))
        driver.get(f"{portal}/labs/alice")
        seen(driver, "button[formaction$='/workbench']")  # the instructor is logged in, all the time
    got = {name: text for found in (origin, file) for name, text in found.items() if text is not None}
    row(
        "hostile HTML, opened by an instructor, as a file and with the workbench's own origin",
        f"{len(got)} of {len(origin) + len(file)}",
    )
    assert not got
    still = made.get("pod", "nb-alice", "--namespace=nublado-alice")
    assert still["metadata"]["uid"] == lab["metadata"]["uid"]
    assert not still["metadata"].get("deletionTimestamp")


def test_a_workbench_goes_with_the_time_and_its_home_stays(made: Ordinary) -> None:
    create_lab(made, "dora", duration=100)
    began = time.monotonic()
    ready_workbench(made, "dora", 90)
    within(made, "dora", "sh", "-c", "echo mine >kept")
    until(lambda: not made.get("namespace", "nublado-dora"), 300, "the namespace stays", every_s=1)
    row("time over after 100 s", f"lab, workbench and namespace gone after {time.monotonic() - began:.0f} s")
    assert at_node(made, "cat", f"{csidriver.HOMES}/dora/kept") == "mine\n"
    create_lab(made, "dora")
    ready_workbench(made, "dora")
    assert within(made, "dora", "cat", "kept") == "mine\n"
