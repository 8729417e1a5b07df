"""An instructor's kubeconfig that has nothing but what `kubectl lablet grant` gives, on a real API server."""

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import RBAC, Instructor
from tests.component.controllers.harness import World
from tests.support.topologies import topology


async def test_grant_is_idempotent_and_says_what_it_does(world: World, instructor: Instructor) -> None:
    bindings = f"{RBAC}/namespaces/{world.namespace}/rolebindings"
    assert "created (dry run)" in await instructor.grant("--dry-run")
    assert await world.admin.items(bindings) == [], "a dry run writes nothing"
    first = (await instructor.grant()).splitlines()
    assert [line.partition(":")[0] for line in first if " created: " in line] == [
        "rolebinding/vkprovider-instructor",
        "clusterrolebinding/vkprovider-instructor-definitions",
        "rolebinding/lablets created",
        "rolebinding/vkprovider-topologies created",
    ]
    before = await world.admin.items(bindings)
    again = await instructor.grant()
    assert again.count(" unchanged: ") == 4
    assert await world.admin.items(bindings) == before
    path = f"{bindings}/lablets"
    await world.admin.patch(path, {"subjects": [{"kind": "ServiceAccount", "name": "own", "namespace": "x"}]})
    assert "rolebinding/lablets extended" in await instructor.grant()
    kept = await world.admin.get(path)
    assert kept is not None
    assert {subject["name"] for subject in kept["subjects"]} == {"own", "default"}


async def test_manifests_of_a_dry_run_are_what_grant_writes(desk: Desk, instructor: Instructor) -> None:
    text = await instructor.grant("--dry-run", "-o", "yaml")
    file = desk.folder / "bindings.yaml"
    file.write_text(text)
    applied = await desk.kubectl("create", "-f", str(file))
    assert (applied.code, len(applied.out.splitlines())) == (0, 4)
    assert (await instructor.grant()).count(" unchanged: ") == 4


async def test_grant_warns_of_a_namespace_without_a_pod_security_level(
    world: World, desk: Desk, instructor: Instructor
) -> None:
    """By the command that helps; the bindings are made all the same."""
    page = ("--page-url", "https://labs.example.com")
    warned = await desk.lablet("grant", instructor.user, "-n", world.namespace, *page)
    assert (warned.code, warned.out.count(" created: "), "WARNING" in warned.err) == (0, 5, True)
    command = warned.err.split("Set it: kubectl ")[1].split()
    assert (await desk.kubectl(*command)).code == 0
    quiet = await desk.lablet("grant", instructor.user, "-n", world.namespace)
    assert (quiet.code, quiet.err) == (0, ""), "the address stays, though no CMLWorker shows it"
    assert quiet.out.count(" unchanged: ") == 5


async def test_grant_refuses_what_leads_nowhere(world: World, desk: Desk) -> None:
    for words, says in (
        (["alice", "-n", "nowhere"], "namespace nowhere does not exist; make it: kubectl create namespace nowhere"),
        (["alice"], "name the namespace of the class"),
        (["alice", "-n", "vkprovider-system"], "a namespace of the provider"),
        (["alice", "-n", world.namespace, "--provider-namespace", "labs"], "--provider-namespace vkprovider-system"),
        ([f"system:serviceaccount:{world.namespace}:nobody", "-n", world.namespace], "kubectl create serviceaccount"),
    ):
        refused = await desk.lablet("grant", *words)
        assert refused.code != 0
        assert says in refused.err
    assert await world.admin.items(f"{RBAC}/namespaces/{world.namespace}/rolebindings") == []


async def test_grant_gives_nothing_that_nothing_limits(world: World, desk: Desk, instructor: Instructor) -> None:
    """Where the policy is not installed, the role would reach the definitions of all classes."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    kept = await world.admin.get(f"{path}/vkprovider-instructors")
    assert kept is not None
    await world.admin.delete(f"{path}/vkprovider-instructors")
    try:
        refused = await desk.lablet("grant", instructor.user, "-n", world.namespace)
        assert refused.code == 1
        assert "ValidatingAdmissionPolicyBinding vkprovider-instructors does not exist" in refused.err
        assert await world.admin.items(f"{RBAC}/namespaces/{world.namespace}/rolebindings") == []
    finally:
        del kept["metadata"]["resourceVersion"], kept["metadata"]["uid"]
        await world.admin.create(path, kept)


async def test_an_instructor_sees_one_namespace(world: World, instructor: Instructor) -> None:
    await instructor.grant()
    await world.replica()
    worker = await world.worker()
    definition = await world.define(topology({"r1": "alpine"}, {"r1": ["serial:4001"]}))
    notes = {"vkprovider.io/username": "alice"}
    mine = await world.pod(definition, worker, annotations=notes)
    await mine.ready()
    assert "alice" in await instructor.kubectl("lablet", "list")
    assert "serial" in await instructor.kubectl("lablet", "ports", "alice")
    assert "stopped" in await instructor.kubectl("lablet", "stop", "alice", "--wait")
    assert worker in await instructor.kubectl("get", "cmlworkers")
    for elsewhere in (["-n", "default"], ["-A"]):
        assert "is forbidden" in await instructor.kubectl("lablet", "list", *elsewhere)
    for refused in (
        ["get", "pods", "-n", "default"],
        ["get", "secrets"],
        ["get", "configmaps", "-n", "vkprovider-system"],
        ["create", "rolebinding", "x", "--clusterrole=vkprovider-instructor", "--user=bob"],
    ):
        assert "forbidden" in await instructor.kubectl(*refused), refused


async def test_logins_and_archives_are_those_of_the_namespace(world: World, instructor: Instructor) -> None:
    await instructor.grant()
    for resource, verb in (("lablets/login", "get"), ("lablets/archive", "get"), ("lablets", "teach")):
        assert await instructor.may(verb, resource, world.namespace, "vkprovider.io"), resource
        for elsewhere in ("default", "vkprovider-system", ""):
            assert not await instructor.may(verb, resource, elsewhere, "vkprovider.io"), (resource, elsewhere)
    for verb in ("get", "list", "create"):
        assert not await instructor.may(verb, "secrets", world.namespace)
    assert not await instructor.may("author", "labletdefinitions", "", "vkprovider.io")
    assert not await instructor.may("use", "labletdefinitions", "", "vkprovider.io")


async def test_a_refusal_names_the_role_and_the_command(world: World, instructor: Instructor, desk: Desk) -> None:
    """And the command that it names is the one that helps."""
    namespace, command = world.namespace, f"kubectl lablet grant {instructor.user} -n {world.namespace}"
    refused = await instructor.kubectl("lablet", "list")
    assert (
        f"it takes the ClusterRole vkprovider-instructor in namespace {namespace}; an admin grants it: {command}"
        in refused
    )
    defined = await instructor.kubectl("lablet", "refresh", "netlab")
    assert f"it takes the ClusterRole vkprovider-instructor-definitions; an admin grants it: {command}" in defined
    granted = await desk.kubectl(*command.split()[1:])
    assert granted.code == 0
    assert "No lablets found" in await instructor.kubectl("lablet", "list")


async def test_nobody_becomes_an_instructor_of_a_lab_of_the_portal(world: World, desk: Desk) -> None:
    """Who may make Pods there reads the token of its user."""
    name = f"nublado-{world.namespace}"
    labels = {"vkprovider.io/portal": "vkprovider-system"}
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    try:
        refused = await desk.lablet("grant", "fri", "-n", name)
        assert refused.code == 1
        assert f"namespace {name} is that of a lab of the portal" in refused.err
        assert await world.admin.items(f"{RBAC}/namespaces/{name}/rolebindings") == []
    finally:
        await world.admin.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"vkprovider.io/portal": None}}})
        await world.admin.delete(f"/api/v1/namespaces/{name}")
