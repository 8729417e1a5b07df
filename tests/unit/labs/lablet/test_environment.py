"""The variables of a Pod's containers: where they come from, what is missing, and in which words that is said."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from vkprovider.lablet.reasons import EnvironmentReason
from vkprovider.labs.pure.lablet.environment import sources
from vkprovider.labs.pure.lablet.environment.resolve import Environment, resolve
from vkprovider.labs.pure.lablet.environment.sources import (
    Placement,
    Read,
    Unread,
    VariableSource,
    content_of,
    sources_of,
)
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform.environment import EnvPod
from vkprovider.platform.errors import InputError

PLACE = Placement("198.51.100.7", Resources(cpu_m=16_000, memory_bytes=64 * 2**30))
OBJECTS: dict[VariableSource, Mapping[str, str | bytes]] = {
    VariableSource("configmap", "site"): {"SITE": "berlin", "NTP": "192.0.2.1", "1st": "x", "..": "y"},
    VariableSource("secret", "login"): {"password": b"pa$$(SITE)", "blob": b"\xff\xfe"},
}
UNREADABLE = Unread(why="the provider may not read it; allow it: kubectl …")
RESOURCES = {"limits": {"memory": "512Mi", "cpu": "1500m"}, "requests": {"cpu": "1m"}}


def pod(*containers: dict[str, Any]) -> EnvPod:
    """Make a Pod as the API server sends it."""
    metadata = {
        "name": "lab-1",
        "namespace": "team",
        "uid": "u-1",
        "labels": {"apps.kubernetes.io/pod-index": "1"},
        "annotations": {"team.example/seat": "12"},
    }
    spec = {"containers": list(containers), "nodeName": "vnode.w1", "serviceAccountName": "students"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, EnvPod)


def lab(*env: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Make the container `lab`."""
    return {"name": "lab", "env": list(env), **more}


def given(name: str, **source: Any) -> dict[str, Any]:
    """Make a variable with `valueFrom`."""
    return {"name": name, "valueFrom": source}


def key(name: str, key: str, **more: Any) -> dict[str, Any]:
    """Refer to a key."""
    return {"name": name, "key": key, **more}


def resolved(
    whole: EnvPod, unread: Mapping[VariableSource, Unread] | None = None, place: Placement = PLACE
) -> Environment:
    """Resolve a Pod in a namespace with `OBJECTS`; `unread`: what cannot be read of it."""
    read: dict[VariableSource, Read] = {}
    for source, wanted in sources_of(whole).items():
        if unread and source in unread:
            read[source] = unread[source]
        else:
            found = OBJECTS.get(source)
            read[source] = Unread(missing=True) if found is None else content_of(found, wanted)
    return resolve(whole, read, place)


def values(*env: dict[str, Any], **more: Any) -> dict[str, str]:
    """Return the variables of a Pod with the container `lab` alone."""
    return dict(resolved(pod(lab(*env, **more))).containers["lab"])


def refused(*env: dict[str, Any], **more: Any) -> tuple[str, str]:
    """Return the reason of the Event, and the message, of a Pod whose variables cannot be resolved."""
    with pytest.raises(InputError) as caught:
        resolved(pod(lab(*env)), **more)
    assert caught.value.reason == "CreateContainerConfigError"
    return caught.value.event, caught.value.message


def test_values_refer_to_those_before_them() -> None:
    found = values(
        {"name": "A", "value": "a"},
        {"name": "B", "value": "$(A)-$$(A)-$(LATER)"},
        {"name": "LATER", "value": "later"},
        {"name": "A", "value": "$(A)$(A)"},
        {"name": "NONE"},
    )
    assert found == {"A": "aa", "B": "a-$(A)-$(LATER)", "LATER": "later", "NONE": ""}


def test_keys_of_config_maps_and_secrets_are_not_expanded() -> None:
    found = values(
        given("SITE", configMapKeyRef=key("site", "SITE")),
        given("PASSWORD", secretKeyRef=key("login", "password")),
        {"name": "BOTH", "value": "$(SITE)/$(PASSWORD)"},
    )
    assert found == {"SITE": "berlin", "PASSWORD": "pa$$(SITE)", "BOTH": "berlin/pa$$(SITE)"}


def test_whole_objects_come_first_and_later_ones_win() -> None:
    both = [{"configMapRef": {"name": "site"}}, {"prefix": "OLD_", "configMapRef": {"name": "site"}}]
    found = resolved(pod(lab({"name": "NTP", "value": "own"}, {"name": "S", "value": "$(OLD_SITE)"}, envFrom=both)))
    assert found.containers["lab"] == {
        "SITE": "berlin",
        "NTP": "own",
        "S": "berlin",
        "OLD_SITE": "berlin",
        "OLD_NTP": "192.0.2.1",
        "OLD_1st": "x",
        "OLD_..": "y",
    }
    [notice] = found.notices
    assert (notice.type, notice.reason) == ("Warning", "InvalidEnvironmentVariableNames")
    assert notice.message.startswith("keys [.., 1st] from configmap site were skipped")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "lab-1"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['apps.kubernetes.io/pod-index']", "1"),
        ("metadata.annotations['team.example/seat']", "12"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "vnode.w1"),
        ("spec.serviceAccountName", "students"),
        ("status.podIP", "198.51.100.7"),
        ("status.podIPs", "198.51.100.7"),
        ("status.hostIP", "198.51.100.7"),
        ("status.hostIPs", "198.51.100.7"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert values(given("A", fieldRef={"apiVersion": "v1", "fieldPath": path})) == {"A": value}


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.memory"}, str(512 * 2**20)),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "512"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "1"),
        ({"resource": "requests.cpu", "divisor": "0"}, "1"),
        ({"resource": "requests.memory"}, "0"),
        ({"resource": "limits.cpu", "containerName": "r1"}, "16"),
        ({"resource": "limits.memory", "containerName": "r1", "divisor": "1Gi"}, "64"),
    ],
)
def test_resources_of_a_container(ref: dict[str, str], value: str) -> None:
    whole = pod(lab(given("A", resourceFieldRef=ref), resources=RESOURCES), {"name": "r1"})
    assert resolved(whole).containers["lab"] == {"A": value}


def test_a_device_has_the_variables_of_the_lab_and_its_own() -> None:
    device = {"name": "r1", "env": [{"name": "HOST", "value": "$(HOST)-r1"}, {"name": "X", "value": "$(HOST)"}]}
    found = resolved(pod(device, lab({"name": "HOST", "value": "lab"}, {"name": "Y", "value": "$(X)"})))
    assert {name: dict(each) for name, each in found.containers.items()} == {
        "lab": {"HOST": "lab", "Y": "$(X)"},
        "r1": {"HOST": "lab-r1", "X": "lab-r1", "Y": "$(X)"},
    }


def test_a_pod_without_a_container_for_the_lab() -> None:
    found = resolved(pod({"name": "r1", "env": [{"name": "A", "value": "a"}]}))
    assert {name: dict(each) for name, each in found.containers.items()} == {"lab": {}, "r1": {"A": "a"}}


CONFIG_MAP, SECRET = VariableSource("configmap", "site"), VariableSource("secret", "login")


@pytest.mark.parametrize(
    ("variable", "unread", "reason", "message"),
    [
        (given("A", configMapKeyRef=key("no", "k")), {}, "MandatoryConfigMapNotFound", 'configmap "no" not found'),
        (
            given("A", configMapKeyRef=key("site", "k")),
            {},
            "MandatoryConfigMapKeyNotFound",
            'key "k" does not exist in configmap "site"',
        ),
        (
            given("A", configMapKeyRef=key("site", "SITE")),
            {CONFIG_MAP: UNREADABLE},
            "FailedToReadMandatoryConfigMap",
            f'failed to read configmap "site": {UNREADABLE.why}',
        ),
        (given("A", secretKeyRef=key("no", "k")), {}, "MandatorySecretNotFound", 'secret "no" not found'),
        (
            given("A", secretKeyRef=key("login", "k")),
            {},
            "MandatorySecretKeyNotFound",
            'key "k" does not exist in secret "login"',
        ),
        (
            given("A", secretKeyRef=key("login", "blob")),
            {},
            "FailedToReadMandatorySecret",
            'failed to read secret "login": key "blob" is not text in UTF-8',
        ),
        (
            given("A", secretKeyRef=key("login", "password")),
            {SECRET: UNREADABLE},
            "FailedToReadMandatorySecret",
            f'failed to read secret "login": {UNREADABLE.why}',
        ),
    ],
)
def test_a_reference_that_is_missing(
    variable: dict[str, Any], unread: dict[VariableSource, Unread], reason: str, message: str
) -> None:
    assert refused(variable, unread=unread) == (reason, message)
    [(kind, ref)] = variable["valueFrom"].items()
    found = resolved(pod(lab({"name": "B", "value": "$(A)"}, given("A", **{kind: {**ref, "optional": True}}))), unread)
    assert found.containers["lab"] == {"B": "$(A)"}
    [notice] = found.notices
    assert notice.reason == reason.replace("Mandatory", "Optional")
    assert notice.message == f'skipping optional envvar "A": {message}'
    assert notice.reason in list(EnvironmentReason)


@pytest.mark.parametrize("kind", ["configMap", "secret"])
@pytest.mark.parametrize(("unread", "word"), [(Unread(missing=True), "NotFound"), (UNREADABLE, "FailedToRead")])
def test_a_whole_object_that_is_missing(kind: str, unread: Unread, word: str) -> None:
    title, source = kind[0].upper() + kind[1:], VariableSource("secret" if kind == "secret" else "configmap", "x")
    for optional in (False, True):
        whole = pod(lab(envFrom=[{f"{kind}Ref": {"name": "x", "optional": optional}}]))
        which = "Optional" if optional else "Mandatory"
        reason = f"{which}{title}{word}" if unread.missing else f"{word}{which}{title}"
        if optional:
            found = resolve(whole, {source: unread}, PLACE)
            assert [notice.reason for notice in found.notices] == [reason]
        else:
            with pytest.raises(InputError) as caught:
                resolve(whole, {source: unread}, PLACE)
            assert caught.value.event == reason


def test_all_that_is_missing_is_named_at_once() -> None:
    env = [given(f"A{i}", secretKeyRef=key(f"s{i % 7}", "k")) for i in range(20)]
    event, message = refused(given("B", configMapKeyRef=key("none", "k")), *env)
    assert event == "MandatoryConfigMapNotFound"
    assert message.startswith('configmap "none" not found; secret "s0" not found; ')
    assert message.endswith("; and 3 more")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"fieldRef": {"fieldPath": "spec.restartPolicy"}}, "spec.restartPolicy is not a field that a variable can"),
        ({"resourceFieldRef": {"resource": "cpu"}}, "cpu is not a resource that a variable can have"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "no"}}, "there is no container 'no'"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}}, "'x' is not a quantity"),
        ({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}, "names no source that a lablet has"),
    ],
)
def test_what_no_lablet_has(source: dict[str, Any], message: str) -> None:
    event, said = refused(given("A", **source))
    assert event == "CreateContainerConfigError"
    assert said.startswith("variable 'A': ")
    assert message in said


def test_an_address_that_is_not_known_yet_is_waited_for() -> None:
    unknown = Placement("", Resources())
    event, message = refused(given("A", fieldRef={"fieldPath": "status.podIP"}), place=unknown)
    assert (event, message) == (
        "CreateContainerConfigError",
        "variable 'A': status.podIP: the worker's address is not known yet",
    )


def test_values_that_grow_without_end_are_refused() -> None:
    doubling = [{"name": f"A{i + 1}", "value": f"$(A{i})$(A{i})"} for i in range(60)]
    _, message = refused({"name": "A0", "value": "x" * 100}, *doubling)
    assert f"more than {sources.CHARS_MAX} characters" in message


def test_only_what_a_pod_refers_to_is_kept() -> None:
    whole = pod(
        lab(
            given("A", secretKeyRef=key("login", "a")),
            given("B", secretKeyRef=key("login", "b")),
            given("C", configMapKeyRef=key("site", "c")),
            {"name": "D", "value": "d"},
            envFrom=[{"configMapRef": {"name": "site"}}, {}],
        )
    )
    assert sources_of(whole) == {
        VariableSource("configmap", "site"): None,
        VariableSource("secret", "login"): frozenset({"a", "b"}),
    }
    assert content_of({"a": b"1", "z": b"2"}, frozenset({"a"})).values == {"a": "1"}


def test_no_value_is_in_what_is_printed() -> None:
    found = resolved(pod(lab(given("PASSWORD", secretKeyRef=key("login", "password")))))
    assert found.secret
    assert "PASSWORD" in repr(found)
    assert "pa$$" not in repr(found) + repr(content_of(OBJECTS[SECRET], None))
    assert not resolved(pod(lab({"name": "A", "value": "a"}))).secret
