"""The manifests agree with the program, and with the image that the Containerfile describes."""

import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import AliasChoices

from tools.generate import groups, variables
from tunnels.websocket.socket import PATH
from vkprovider import __version__
from vkprovider.lablet import names
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.labs.settings.cluster import Settings
from vkprovider.platform import wellknown

OLDEST = "1.30"
"""The oldest supported release of Kubernetes."""
ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((MANIFESTS / "install.yaml").read_text()))
APPLIED = [
    MANIFESTS / "install.yaml",
    *sorted(MANIFESTS.glob("components/*/*.yaml")),
    *sorted(MANIFESTS.glob("examples/*")),
]
INSTALL_PAGE = (ROOT / "docs" / "install.md").read_text()
CONTAINERFILE = (ROOT / "Containerfile").read_text()


@pytest.fixture
def pod() -> dict[str, Any]:
    """The Deployment's Pods."""
    [deployment] = [item for item in OBJECTS if item["kind"] == "Deployment"]
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def instruction(name: str) -> str:
    """The last instruction of a kind, of the image that is run."""
    return [line for line in CONTAINERFILE.splitlines() if line.startswith(f"{name} ")][-1].removeprefix(f"{name} ")


def known_variables() -> set[str]:
    """Every environment variable that is a setting."""
    aliases = [field.validation_alias for group in groups() for field in variables(group).values()]
    return {str(name) for alias in aliases for name in (alias.choices if isinstance(alias, AliasChoices) else [alias])}


def test_image_is_that_of_this_version(pod: dict[str, Any]) -> None:
    assert [c["image"] for c in pod["containers"]] == [f"vkprovider:{__version__}"], "manifests/deployment: newTag"


def test_deployment_sets_settings_that_exist(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    assert {entry["name"] for entry in container["env"]} <= known_variables()
    port = Settings().http.port
    assert [entry["containerPort"] for entry in container["ports"]] == [port]


def test_image_runs_as_the_deployment_says(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    context = pod["securityContext"]
    assert instruction("USER") == f"{context['runAsUser']}:{context['runAsGroup']}"
    command = yaml.safe_load(instruction("ENTRYPOINT")) + yaml.safe_load(instruction("CMD"))
    assert container["command"] == command
    assert instruction("EXPOSE") == str(container["ports"][0]["containerPort"])


def test_page_is_tls_for_all_who_ask_it(pod: dict[str, Any]) -> None:
    """Probes, Prometheus, and whoever goes by the Service's port; and no Secret is needed for it."""
    [container] = pod["containers"]
    environ = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    http = Settings.from_environment({name: value for name, value in environ.items() if "HTTP" in name}).http
    assert http.tls_self_signed
    assert http.tls_files is not None
    [mounted] = [mount for mount in container["volumeMounts"] if http.tls_files[0].startswith(mount["mountPath"] + "/")]
    [volume] = [volume for volume in pod["volumes"] if volume["name"] == mounted["name"]]
    assert volume["secret"] == {"secretName": "vkprovider-tls", "optional": True}
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["scheme"] for probe in probes} == {"HTTPS"}
    [monitor] = yaml.safe_load_all((MANIFESTS / "monitoring" / "operator" / "podmonitor.yaml").read_text())
    [asked] = monitor["spec"]["podMetricsEndpoints"]
    metrics = yaml.safe_load((MANIFESTS / "monitoring" / "service.yaml").read_text())
    [service] = [item for item in OBJECTS if item["kind"] == "Service"]
    [policy] = [item for item in OBJECTS if item["kind"] == "NetworkPolicy"]
    named = {port["name"] for port in container["ports"]}
    asking = [*probes, asked, *policy["spec"]["ingress"][0]["ports"]]
    assert {use["port"] for use in asking} == named
    assert {port["targetPort"] for each in (service, metrics) for port in each["spec"]["ports"]} == named
    assert asked["scheme"] == metrics["metadata"]["annotations"]["prometheus.io/scheme"] == "https"


def test_image_is_built_of_what_the_wheel_needs() -> None:
    """What `.dockerignore` lets through exists, and the packages, their data and the pinned versions are among it."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    passed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert {name for name in passed if not (ROOT / name).exists()} == set()
    assert passed >= {"vkprovider", "tunnels", "manifests", "pyproject.toml", "setup.py", "README.md", "LICENSE"}
    assert {"requirements.lock", "requirements-build.lock"} <= passed


def locked(name: str) -> dict[str, int]:
    """Return the pinned requirements of a lock file, and how many hashes each has."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {words[0].lower().replace("_", "-"): len([w for w in words if w.startswith("--hash=")]) for words in lines}


def test_image_installs_what_is_tested_and_everything_by_hash() -> None:
    tested = {
        line.lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    runtime, build = locked("requirements.lock"), locked("requirements-build.lock")
    assert runtime.keys() | build.keys() <= tested
    assert all({**runtime, **build}.values())
    names = {requirement.partition("==")[0] for requirement in runtime}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    assert {re.split(r"[^A-Za-z0-9-]", name)[0].lower() for name in direct} <= names
    assert [requirement.partition("==")[0] for requirement in build] == ["setuptools"]
    steps = (ROOT / "Containerfile").read_text().replace("\\\n", " ").split("&&")
    for name in ("requirements.lock", "requirements-build.lock"):
        [step] = [step for step in steps if name in step.split()]
        assert "--require-hashes" in step


def test_image_of_a_workbench_installs_what_is_locked() -> None:
    folder = ROOT / "images" / "workbench"
    pins = locked(str(folder / "requirements.lock"))
    assert all(pins.values())
    lines = (folder / "requirements.in").read_text().splitlines()
    wanted = {line.partition("[")[0] for line in lines if not line.startswith("#")}
    assert wanted <= {pin.partition("==")[0] for pin in pins if "==" in pin}
    build = (folder / "Containerfile").read_text()
    assert "--require-hashes --requirement /tmp/requirements.lock" in build
    assert 'echo "${KUBECTL_SHA256}  /usr/local/bin/kubectl" | sha256sum --check --strict' in build


def test_patch_of_the_page_of_workbenches_finds_the_lists_of_the_policy() -> None:
    """Kustomize would replace the whole list of variables by a patch that merges."""
    page = textwrap.dedent(
        (ROOT / "docs" / "workbench.md").read_text().partition("        patches:\n")[2].partition("\n\n")[0]
    )
    [patch] = yaml.safe_load(page)
    policies = yaml.safe_load_all((MANIFESTS / "components" / "portal" / "confine.yaml").read_text())
    [policy] = [each for each in policies if each["kind"] == patch["target"]["kind"]]
    assert policy["metadata"]["name"] == patch["target"]["name"]
    variables = policy["spec"]["variables"]
    operations = yaml.safe_load(patch["patch"])
    assert [each["op"] for each in operations] == ["test", "replace"] * 2
    for test, replace in zip(operations[::2], operations[1::2], strict=True):
        place, key = test["path"].removeprefix("/spec/variables/").split("/")
        assert (key, variables[int(place)]["name"]) == ("name", test["value"])
        assert replace["path"] == f"/spec/variables/{place}/expression"


def test_base_image_is_named_by_digest() -> None:
    images = [line.split()[1] for line in CONTAINERFILE.splitlines() if line.startswith("FROM ")]
    assert set(images) == {"${PYTHON_IMAGE}"}
    assert re.search(r"^ARG PYTHON_IMAGE=\S+@sha256:[0-9a-f]{64}$", CONTAINERFILE, re.MULTILINE)


def test_policy_of_instructors_reads_the_label_of_a_definition() -> None:
    [policy] = [o for o in OBJECTS if o["metadata"]["name"] == "vkprovider-instructors" and "variables" in o["spec"]]
    expressions = {variable["name"]: variable["expression"] for variable in policy["spec"]["variables"]}
    assert all(f"labels[?'{names.LABEL_OWNER_NAMESPACE}']" in expressions[name] for name in ("before", "after"))


def test_policies_guard_every_report() -> None:
    """That of learners guards one, which may not even be removed."""
    found = {o["metadata"]["name"]: o["spec"] for o in OBJECTS if "matchConstraints" in o.get("spec", {})}
    variables = {
        name: {variable["name"]: variable["expression"] for variable in found[name]["variables"]}
        for name in ("vkprovider-reports", "vkprovider-learners")
    }
    listed = set(re.findall(r"'([^']+)'", variables["vkprovider-reports"]["reports"]))
    assert "key in variables.reports" in variables["vkprovider-reports"]["changed"]
    assert f"'{names.ANNOTATION_LEARNER}'" in variables["vkprovider-learners"]["learner"]
    assert listed | {names.ANNOTATION_LEARNER} == names.REPORTS


def test_provider_is_confined_in_all_that_it_has_a_right_to_change() -> None:
    """A right on Nodes, Pods or RuntimeClasses that no rule of the policy matches would be unlimited."""
    [policy] = [o for o in OBJECTS if o["metadata"]["name"] == "vkprovider-confine" and "matchConstraints" in o["spec"]]
    matched: set[tuple[str, str]] = set()
    for rule in policy["spec"]["matchConstraints"]["resourceRules"]:
        kinds = [kind.replace("nodes/*", "nodes/status") for kind in rule["resources"]]
        matched |= {(kind, operation) for kind in kinds for operation in rule["operations"]}
    confined = {kind.split("/")[0] for kind, _ in matched}
    operations = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
    wanted = {
        (kind, operations[verb])
        for role in OBJECTS
        if role["kind"] in {"ClusterRole", "Role"} and role["metadata"]["name"] == "vkprovider"
        for rule in role["rules"]
        for kind in rule["resources"]
        if kind.split("/")[0] in confined
        for verb in rule["verbs"]
        if verb in operations
    }
    assert ("pods/status", "UPDATE") in wanted
    assert wanted <= matched


def test_the_program_of_muxes_is_confined_in_all_that_it_has_a_right_to_change() -> None:
    """But for Events, and for the reviews of tokens and rights, which change nothing."""
    folder = MANIFESTS / "components" / "mux"
    text = (folder / "confine.yaml").read_text()
    assert "vkprovider-system" not in text
    [policy] = [item for item in yaml.safe_load_all(text) if item["kind"] == "ValidatingAdmissionPolicy"]
    matched = {
        (kind, operation)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for kind in rule["resources"]
        for operation in rule["operations"]
    }
    operations = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
    wanted = {
        (kind, operations[verb])
        for role in yaml.safe_load_all((folder / "rbac.yaml").read_text())
        for rule in role.get("rules", ())
        for kind in rule["resources"]
        for verb in rule["verbs"]
        if verb in operations
    }
    harmless = {"events", "tokenreviews", "subjectaccessreviews"}
    assert {kind for kind, _ in wanted - matched} == harmless
    assert ("endpoints", "DELETE") in wanted


def test_the_portal_is_confined_in_all_that_can_be_written() -> None:
    """Whatever right it has or gets; and with the prefix that its Deployment sets."""
    folder = MANIFESTS / "components" / "portal"
    text = (folder / "confine.yaml").read_text()
    assert "vkprovider-system" not in text
    [policy] = [item for item in yaml.safe_load_all(text) if item["kind"] == "ValidatingAdmissionPolicy"]
    everything = ["*"]
    assert policy["spec"]["matchConstraints"] == {
        "resourceRules": [
            {"apiGroups": everything, "apiVersions": everything, "operations": everything, "resources": ["*/*"]}
        ]
    }
    [deployment] = [
        item for item in yaml.safe_load_all((folder / "deployment.yaml").read_text()) if item["kind"] == "Deployment"
    ]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    environ = {entry["name"]: entry.get("value") for entry in container["env"]}
    [prefix] = [each for each in policy["spec"]["variables"] if each["name"] == "prefix"]
    assert prefix["expression"] == f"'{environ['VKPROVIDER_PORTAL_NAMESPACE_PREFIX']}-'"


def test_the_portal_neither_reads_secrets_nor_acts_as_others_nor_opens_consoles() -> None:
    rules = [
        rule
        for role in yaml.safe_load_all((MANIFESTS / "components" / "portal" / "rbac.yaml").read_text())
        for rule in role.get("rules", ())
    ]
    given = {(verb, kind) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    assert {verb for verb, kind in given if kind in {"secrets", "configmaps"}} == {"create", "delete"}
    # Of links it reads them, each by its name, and has tokens of these alone: confine.yaml.
    assert {verb for verb, kind in given if kind == "serviceaccounts"} == {"create", "get"}
    assert {verb for verb, kind in given if kind == "serviceaccounts/token"} == {"create"}
    # Of classes it reads them, to write the like in the labs of each; it never binds vkprovider-instructor itself.
    assert {verb for verb, kind in given if kind == "rolebindings"} == {"list", "watch", "create", "patch", "delete"}
    assert "*" not in {word for right in given for word in right}
    assert not {verb for verb, _ in given} & {"impersonate", "escalate"}
    assert {kind for _, kind in given if "/" in kind} == {"serviceaccounts/token"}
    [bound] = [rule for rule in rules if "bind" in rule["verbs"]]
    assert bound["resources"] == ["clusterroles"]
    readers = {"vkprovider-learner", "vkprovider-lab-instructor", "vkprovider-parameter-reader"}
    assert set(bound["resourceNames"]) == readers


def test_no_policy_names_the_namespace() -> None:
    """A second installation's manifests overwrite policies, which no policy protects: the text must be the same."""
    policies = [item for item in OBJECTS if item["kind"].startswith("ValidatingAdmissionPolicy")]
    assert policies
    assert "vkprovider-system" not in yaml.safe_dump_all(policies)


def test_all_that_installations_share_is_guarded() -> None:
    """An object without a namespace, or in one of Kubernetes', is the only one of its name: it has the label."""
    [guard] = [o for o in OBJECTS if o["metadata"]["name"] == "vkprovider-installation" and "paramKind" in o["spec"]]
    guarded = {kind for rule in guard["spec"]["matchConstraints"]["resourceRules"] for kind in rule["resources"]}
    installed = list(yaml.safe_load_all((MANIFESTS / "install.yaml").read_text()))
    shared = [
        item
        for item in installed
        if item["metadata"].get("namespace", "") != "vkprovider-system"
        and item["kind"] != "Namespace"
        and not item["kind"].startswith("ValidatingAdmissionPolicy")
    ]
    assert len(shared) > 10
    for item in shared:
        assert item["metadata"]["labels"]["vkprovider.io/installed-in"] == "vkprovider-system", item["metadata"]["name"]
        kind = item["kind"].lower()
        assert f"{kind}{'es' if kind.endswith('class') else 's'}" in guarded


def test_every_policy_says_what_happens_when_it_fails() -> None:
    policies = [item for item in OBJECTS if item["kind"] == "ValidatingAdmissionPolicy"]
    assert len(policies) == 13
    bound = {item["spec"]["policyName"] for item in OBJECTS if item["kind"] == "ValidatingAdmissionPolicyBinding"}
    for policy in policies:
        assert policy["spec"]["failurePolicy"] in {"Fail", "Ignore"}
        assert policy["metadata"]["name"] in bound


@pytest.mark.parametrize("path", APPLIED, ids=lambda path: str(path.relative_to(MANIFESTS)))
def test_oldest_supported_release_knows_every_field(path: Path) -> None:
    for item in yaml.safe_load_all(path.read_text()):
        others = ("kustomize.config.k8s.io/", "gateway.networking.k8s.io/", f"{wellknown.GROUP}/")
        if not item["apiVersion"].startswith(others):
            kubernetes_validate.validate(item, OLDEST, strict=True)


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("examples/*")), ids=lambda path: path.stem)
def test_example_is_a_spec_that_the_provider_accepts(path: Path) -> None:
    readers = {"CMLWorker": parse_worker_spec, "LabletDefinition": parse_definition_spec}
    for item in yaml.safe_load_all(path.read_text()):
        if reader := readers.get(item["kind"]):
            reader(item["spec"])


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("examples/*")), ids=lambda path: path.stem)
def test_example_lets_a_namespace_that_it_makes_run_lablets(path: Path) -> None:
    """The right to create Pods is not enough; a namespace that is there already is its admin's business."""
    items = list(yaml.safe_load_all(path.read_text()))
    made = {item["metadata"]["name"] for item in items if item["kind"] == "Namespace"}
    bound = {
        subject["namespace"]
        for item in items
        if item["kind"] == "RoleBinding" and item["roleRef"]["name"] == "vkprovider-lablet-user"
        for subject in item["subjects"]
        if subject["namespace"] == item["metadata"]["namespace"]
    }
    assert made == bound


def test_example_of_a_pool_lets_a_lablet_go_and_shows_each_device() -> None:
    """Its selector needs the label that a lablet loses; a container has the name of a device, and is a terminal."""
    documents = {
        name: yaml.safe_load((MANIFESTS / "examples" / f"{name}.yaml").read_text()) for name in ("pool", "netlab")
    }
    spec, definition = documents["pool"]["spec"], documents["netlab"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"] == {"matchLabels": {names.LABEL_POOL: labels[names.LABEL_POOL]}}
    assert labels.keys() == {names.LABEL_POOL, "class"}
    assert spec["template"]["spec"]["runtimeClassName"] == definition["metadata"]["name"]
    lab, *devices = spec["template"]["spec"]["containers"]
    nodes = parse(definition["spec"]["source"]["inline"]).devices
    assert lab["name"] == names.LAB_CONTAINER
    assert [each["name"] for each in devices] == [each.container for each in nodes if each.definition == "alpine"]
    assert all(each["stdin"] and each["tty"] for each in devices)
    assert {each["image"] for each in (lab, *devices)} == {definition["metadata"]["name"]}, (
        "a pool takes up new content"
    )


def test_example_of_the_tunnel_leads_to_the_page_of_the_replicas(pod: dict[str, Any]) -> None:
    service, ingress = yaml.safe_load_all((MANIFESTS / "examples" / "tunnel.yaml").read_text())
    [deployment] = [item for item in OBJECTS if item["kind"] == "Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    [port] = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in pod["containers"][0]["ports"]}
    [path] = ingress["spec"]["rules"][0]["http"]["paths"]
    assert path["path"] == PATH
    assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
    assert service["metadata"]["namespace"] == ingress["metadata"]["namespace"] == "vkprovider-system"


def test_security_page_names_every_role_and_policy() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    kinds = {"ClusterRole", "ValidatingAdmissionPolicy"}
    wanted = {item["metadata"]["name"] for item in OBJECTS if item["kind"] in kinds} - {"vkprovider"}
    assert {name for name in wanted if f"`{name}`" not in page} == set()


def test_examples_lead_one_address_to_both_services() -> None:
    """By the same paths, to ports that the Services have."""
    page = list(yaml.safe_load_all((MANIFESTS / "deployment" / "service.yaml").read_text()))
    portal = list(yaml.safe_load_all((MANIFESTS / "components" / "portal" / "deployment.yaml").read_text()))
    ports = {
        item["metadata"]["name"]: {port["port"]: port["name"] for port in item["spec"]["ports"]}
        for item in [*page, *portal]
        if item["kind"] == "Service"
    }
    ingresses = list(yaml.safe_load_all((MANIFESTS / "examples" / "ingress.yaml").read_text()))
    led = set()
    for item in ingresses:
        [rule] = item["spec"]["rules"]
        [path] = rule["http"]["paths"]
        service = path["backend"]["service"]
        assert service["port"]["name"] in ports[service["name"]].values()
        assert item["metadata"]["annotations"]["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"
        led.add((rule["host"], path["path"].removesuffix("/(.*)"), service["name"]))
    objects = list(yaml.safe_load_all((MANIFESTS / "examples" / "gateway.yaml").read_text()))
    [route] = [item["spec"] for item in objects if item["kind"] == "HTTPRoute"]
    for rule in route["rules"]:
        [match], [ref] = rule["matches"], rule["backendRefs"]
        assert ref["port"] in ports[ref["name"]]
        assert (route["hostnames"][0], match["path"]["value"], ref["name"]) in led
    assert len(led) == len(route["rules"]) == 2
    verified = {
        ref["name"] for item in objects if item["kind"] == "BackendTLSPolicy" for ref in item["spec"]["targetRefs"]
    }
    assert verified == {name for _, _, name in led}, "both Services speak TLS"


def policy(program: str) -> dict[str, Any]:
    """The NetworkPolicy of a program, as it is shipped."""
    folder = "deployment" if program == "vkprovider" else f"components/{program.removeprefix('vkprovider-')}"
    found: dict[str, Any] = yaml.safe_load((MANIFESTS / folder / "networkpolicy.yaml").read_text())
    assert found["metadata"]["name"] == program
    return found


def test_install_page_names_the_ports_that_policies_let_out() -> None:
    section = INSTALL_PAGE.partition("## Where it may connect")[2].partition("\n## ")[0]
    told: dict[str, set[tuple[int, int]]] = {}
    program = ""
    for name, ports in re.findall(r"^\| ([a-z-]*) ?\| ([0-9,; -]+) \|", section, re.MULTILINE):
        program = name or program
        ranges = [each.partition("-") for each in re.split("[,;] ", ports)]
        told.setdefault(program, set()).update((int(first), int(last or first)) for first, _, last in ranges)
    shipped = {
        program: {
            (port["port"], port.get("endPort", port["port"]))
            for rule in policy(program)["spec"]["egress"]
            for port in rule["ports"]
            if port["port"] != 53  # DNS
        }
        for program in ("vkprovider", "vkprovider-portal", "vkprovider-mux")
    }
    assert told == shipped


def test_lines_of_the_install_page_make_a_policy_larger() -> None:
    section = INSTALL_PAGE.partition("## Where it may connect")[2].partition("\n## ")[0]
    lines = re.findall(r"^ {8}- (\{op: add.*\})$", section, re.MULTILINE)
    assert len(lines) == 2
    for patch in map(yaml.safe_load, lines):
        assert (patch["op"], patch["path"]) == ("add", "/spec/egress/-")
        larger = policy("vkprovider")
        larger["spec"]["egress"].append(patch["value"])
        kubernetes_validate.validate(larger, OLDEST, strict=True)
