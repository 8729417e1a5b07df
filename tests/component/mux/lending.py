"""Slices of exposed lablets, as the provider writes them, and the answers of a mux to them."""

import json

from tests.component.mux.harness import ENDPOINT_SLICES, Json, MuxWorld
from tests.support.apiserver import SYSTEM
from vkprovider.lablet import exposure, names
from vkprovider.lablet.exposure import Exposure


def exposed(world: MuxWorld, pod: str, learner: str, port: int) -> Exposure:
    """Return a lablet of the world with one port, `pc-serial`."""
    return Exposure(
        worker="w1",
        mux=f"mux.{world.edge}",
        namespace=world.team,
        pod=pod,
        pod_uid=f"{pod}-{learner}-{port}",
        learner=learner,
        address="198.51.100.1",
        ports=exposure.ports_of([("PC_serial", "TCP", port)]),
    )


async def expose(world: MuxWorld, each: Exposure, namespace: str = SYSTEM) -> str:
    """Write the slice of a lablet; return its path."""
    path = f"{ENDPOINT_SLICES}/namespaces/{namespace}/endpointslices"
    await world.admin.create(path, exposure.encode(each, namespace, worker_uid="uid-w1"))
    return f"{path}/{exposure.slice_name(each.pod_uid)}"


async def until_answers(world: MuxWorld, path: str, state: str) -> Json:
    """Wait until all ports of a lablet have the same answer of the mux; return the answers by the ports' names."""

    def answers(found: Json) -> Json:
        said: Json = json.loads(found["metadata"]["annotations"].get(names.ANNOTATION_MUX_ANSWER, "{}"))
        return said

    def good(found: Json) -> bool:
        return {each["state"] for each in answers(found).values()} == {state}

    return answers(await world.admin.until(path, good, state))


async def until_answer(world: MuxWorld, path: str, state: str) -> Json:
    """Wait for an answer of the mux to a lablet; return that to its port `pc-serial`."""
    answer: Json = (await until_answers(world, path, state))["pc-serial"]
    return answer
