"""What the doctor says of muxes: those to which definitions lend ports, and all others."""

import msgspec

from vkprovider.doctor.findings import Level
from vkprovider.mux.checks import (
    SERVICE_LB_LABELS,
    BalancedService,
    BalancerSet,
    channels_of,
    check_mux,
    check_served,
    check_store,
    lent_to,
    missing,
    muxes_of,
)
from vkprovider.mux.pure.facts import MuxRef
from vkprovider.platform.objects import CustomResource, Metadata, RoleBinding, RoleRef, Subject

PREFIX = "svc-mux.nowake.ai"
RANGES = '"loadBalancerSourceRanges": ["192.0.2.0/24"]'


def definition(name: str, **expose: object) -> CustomResource:
    return CustomResource(Metadata(name), {"expose": expose} if expose else {})


def service(spec: str, name: str = "labs", **annotations: str) -> BalancedService:
    found = msgspec.json.decode(f'{{"metadata": {{"name": ""}}, "spec": {{{spec}}}}}', type=BalancedService)
    notes = {f"{PREFIX}/{key}": value for key, value in annotations.items()}
    return msgspec.structs.replace(found, metadata=Metadata(name, "edge", annotations=notes))


def test_muxes_are_those_that_definitions_name() -> None:
    named = [definition("a", mux="labs.edge"), definition("b", mux="labs.edge"), definition("c", mux="labs")]
    assert lent_to([*named, definition("d"), definition("e", mux=1)], "vkp") == {
        ("edge", "labs"): ["a", "b"],
        ("vkp", "labs"): ["c"],
    }


def test_muxes_and_channels_are_told_apart() -> None:
    mux = service("", "m", multiplexer="true")
    other, marked = service("", "other"), service("", "no", multiplexer="false")
    channel = service(f'"loadBalancerClass": "{PREFIX}/m.edge"', "c")
    short = service(f'"loadBalancerClass": "{PREFIX}/m"', "s")
    odd = service(f'"loadBalancerClass": "{PREFIX}/m.edge.x"', "o")
    every = [mux, other, marked, channel, short, odd]
    assert muxes_of(every, PREFIX) == {("edge", "m"): mux}
    assert channels_of(every, PREFIX, "vkp") == {("edge", "m"): [channel], ("vkp", "m"): [short]}


def test_a_mux_that_is_not_there_is_a_fault_of_each_definition() -> None:
    named = [definition("a", mux="labs.edge"), definition("b", mux="labs.edge"), definition("c", mux="labs")]
    assert missing(MuxRef("vkp", "labs"), named) == [], "a setting may say which is meant"
    found = missing(MuxRef("edge", "labs"), named)
    assert [(one.level, one.object, one.reason) for one in found] == [
        (Level.FAULT, "LabletDefinition/a", "MuxMissing"),
        (Level.FAULT, "LabletDefinition/b", "MuxMissing"),
    ]
    assert "edge/labs" in found[0].message


def test_a_mux_that_lets_everybody_in_is_noted() -> None:
    for spec in ("", '"loadBalancerSourceRanges": []'):
        [found] = check_mux(service(spec), ["a", "b"])
        assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/edge/labs", "MuxOpenToAll")
        assert "loadBalancerSourceRanges" in found.line
        assert check_mux(service(spec), []) == [], "no lablet is behind it"
    assert check_mux(service(f'{RANGES}, "allocateLoadBalancerNodePorts": false'), ["a"]) == []


def test_node_ports_of_a_mux_and_its_channels_are_noted() -> None:
    for spec in (f'{RANGES}, "allocateLoadBalancerNodePorts": true', f'{RANGES}, "ports": [{{"nodePort": 30001}}]'):
        [found] = check_mux(service(spec), ["a"])
        assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/edge/labs", "MuxNodePorts")
        assert found.message.startswith("edge/labs take")
    taking = service(
        '"allocateLoadBalancerNodePorts": true, "ports": [{"nodePort": 30001}, {"nodePort": 30002}]', "api"
    )
    [found] = check_mux(service(RANGES), [], [taking, service("", "fine")])
    assert found.object == "Service/edge/labs"
    assert found.message.startswith("edge/api take 2 node ports")


def test_service_lb_is_noted_with_its_daemonset() -> None:
    for label in SERVICE_LB_LABELS:
        labels = {label: "labs", label.replace("svcname", "svcnamespace"): "edge"}
        served_by = BalancerSet(Metadata("svclb-labs-1", "kube-system", labels=labels))
        assert served_by.service == ("edge", "labs")
        [found] = check_mux(service(f'{RANGES}, "ports": [{{}}, {{}}]'), ["a"], (), served_by)
        assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/edge/labs", "MuxServiceLB")
        assert "DaemonSet kube-system/svclb-labs-1 has a container for each port, now 2 ports" in found.message
        assert "loadBalancerClass" in found.remedy
    assert BalancerSet(Metadata("other", "kube-system")).service == ("", "")


def test_a_mux_that_no_program_serves_is_said() -> None:
    mux = service("", multiplexer="true")
    [found] = check_served(mux, PREFIX, ["a", "b"])
    assert (found.level, found.object, found.reason) == (Level.FAULT, "Service/edge/labs", "MuxNotServed")
    assert "a, b have no outside port" in found.message
    assert "kubectl apply -k manifests/components/mux" in found.remedy
    assert [each.level for each in check_served(mux, PREFIX, [])] == [Level.NOTE]
    metadata = msgspec.structs.replace(mux.metadata, finalizers=[f"{PREFIX}/finalizer"])
    held = msgspec.structs.replace(mux, metadata=metadata)
    assert check_served(held, PREFIX, []) == [], "svc-lb-mux serves it"
    assert check_served(held, PREFIX, ["a"]), "which knows no lablets"


def test_a_namespace_of_muxes_needs_a_binding() -> None:
    mux = service("", multiplexer="true")

    def binding(namespace: str, role: str = "vkprovider-mux-store", where: str = "vkp") -> RoleBinding:
        subject = Subject("ServiceAccount", "vkprovider-mux", namespace=where)
        return RoleBinding(Metadata("b", namespace), RoleRef("ClusterRole", role), (subject,))

    for bindings in ([binding("edge")], [binding("")]):
        assert check_store(mux, "vkp", bindings) == []
    for bindings in ([], [binding("team")], [binding("edge", "view")], [binding("edge", where="other")]):
        [found] = check_store(mux, "vkp", bindings)
        assert (found.level, found.reason) == (Level.NOTE, "MuxStoreUnbound")
        assert found.remedy == (
            "kubectl -n edge create rolebinding vkprovider-mux-store --clusterrole=vkprovider-mux-store "
            "--serviceaccount=vkp:vkprovider-mux"
        )
