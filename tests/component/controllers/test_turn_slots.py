"""Which turns may call the LDS: a deployment that hangs leaves slots to the others, and no turn is forgotten."""

from tests.component.controllers.parts import claim_store, context
from vkprovider.cml.null import NullLabs, NullWorker
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.controllers.lablet.reconciler import TurnSlots
from vkprovider.labs.controllers.worker.connection import WorkerConnection
from vkprovider.labs.controllers.worker.finalizer import Finalizer
from vkprovider.labs.controllers.worker.lab_index import LabIndex
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.steps import Provision
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.kube.client import KubeClient


def worker_of(kube: KubeClient) -> Worker:
    ctx, labs, spec = context(kube), NullLabs(NullWorker("w1")), {"url": "null://w1"}
    index = LabIndex(ctx.installation, "w1", labs)
    connection = WorkerConnection(parse_worker_spec(spec), labs, index, lambda: None, int, lambda: False)
    finalizer = Finalizer(ctx, "w1", lambda: None, lambda _: None)
    return Worker("w1", "uid-w1", spec, connection, claim_store(ctx), lambda: None, finalizer)


def provision(uid: str, deployment: str) -> Provision:
    session = Session(deployment, uid, "learner")
    return Provision(Claim(uid, "n", uid, "netlab", "d", "1", "x"), session, first_request=True)


async def test_deployment_that_hangs_leaves_slots_to_the_others(kube: KubeClient) -> None:
    worker, slots, woken = worker_of(kube), TurnSlots(), list[str]()

    def ask(uid: str, deployment: str) -> bool:
        """Ask for a slot, as a turn does, which ends at once without one."""
        if slots.acquire(provision(uid, deployment), uid, worker):
            return True
        slots.release(uid, worker, woken.append)
        return False

    hanging = [f"h{number}" for number in range(30)]
    held = [uid for uid in hanging if ask(uid, "hangs")]
    others = [f"o{number}" for number in range(30)]
    served = [uid for uid in others if ask(uid, "answers")]
    assert (len(held), len(served)) == (16, 8)
    woken.clear()
    slots.release(served[0], worker, woken.append)
    assert woken == [others[8]], "the next one of the deployment that answers"
    assert ask(others[8], "answers")
    woken.clear()
    slots.release(held[0], worker, woken.append)
    assert hanging[16] in woken
