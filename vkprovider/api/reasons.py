"""Every reason that vkprovider gives: what it means and what to do about it.

A reason stands in a container's waiting state, a condition or an Event, next to a message with the particulars.
`docs/why.md` is made of these tables, and a test finds reasons of the code that they lack.
"""

from typing import Final, NamedTuple


class Reason(NamedTuple):
    """One reason.

    Attributes:
        means: What is the case.
        remedy: What to do about it; empty if it needs nothing.
    """

    means: str
    remedy: str = ""


PROGRESS: Final = {
    "AllocatingPorts": Reason("The lablet's row is being written into the claims of its worker."),
    "WaitingForRelease": Reason("The lab of an earlier lablet is being removed from the worker and makes room."),
    "ImportingLab": Reason("The lab is being imported."),
    "StartingNodes": Reason("The lab's devices boot; the message counts them."),
    "CleaningUp": Reason("The lab is being stopped, wiped and deleted; the Pod ends when it is gone."),
    "ProvisioningSession": Reason("All devices run; the learner's session is being made in the Lab Delivery System."),
    "Resetting": Reason("Somebody asked for a reset: the lab is wiped and started afresh; a session stays."),
    "ReturningToPool": Reason("The learner's time is over: the lab is wiped and started afresh for its pool."),
    "LabStopped": Reason(
        "The lab is stopped on request; its disks are kept for VKPROVIDER_STOPPED_MAX_SECONDS (24 hours).",
        "Go on with `kubectl lablet start POD`.",
    ),
    "Recovering": Reason("Devices stopped on the worker; they are started again without a wipe, with back-off."),
}
"""Waiting reasons of a Pod that is on its way."""

TROUBLE: Final = {
    "NotALablet": Reason(
        "The Pod is bound to one of our nodes, but its runtimeClassName names no LabletDefinition, or it has init "
        "containers.",
        "Set spec.runtimeClassName to a LabletDefinition, or remove the tolerations that let the Pod come here.",
    ),
    "DefinitionMismatch": Reason(
        "The containers' images do not all name the Pod's LabletDefinition and one version of it.",
        "Write `image: NAME[:VERSION]` with the name in runtimeClassName, the same in every container.",
    ),
    "DefinitionNotReady": Reason(
        "The LabletDefinition has no usable content.",
        "Look at `kubectl describe ldef NAME` and repair what it says; the Pod goes on by itself.",
    ),
    "EnvironmentMismatch": Reason(
        "The definition and the worker belong to different environments.",
        "Do not set spec.nodeName; the scheduler keeps environments apart.",
    ),
    "UnknownVersion": Reason(
        "The definition keeps no content of the version that the image names.",
        "Name a version that `kubectl get ldef NAME -o yaml` lists under status.versions.",
    ),
    "UnknownDevice": Reason(
        "A container has a name that is neither `lab` nor a device of the topology.",
        "Use the container names under status.devices of the LabletDefinition.",
    ),
    "ChargedTooLittle": Reason(
        "The Pod was admitted when the version needed less; it would use more than the scheduler counted.",
        "Delete the Pod; its successor is charged what it needs.",
    ),
    "OutOf": Reason(
        "`OutOfcpu`, `OutOfpods` and so on: the Pod was bound past the scheduler and its worker is full.",
        "Do not set spec.nodeName; or wait until a lablet of this worker ends.",
    ),
    "TooManyPorts": Reason(
        "The topology's port tags need more outside ports than one lablet may have; none was allocated.",
        "Remove port tags from the topology, or raise PORTS_PER_INSTANCE_MAX.",
    ),
    "PortRangeFull": Reason(
        "Fewer ports of the worker's range are free than the lablet needs; none was allocated.",
        "Wait until a lablet of this worker ends, or widen spec.portRange together with the range of PATty.",
    ),
    "PortConflict": Reason(
        "A port of the lablet's row is claimed by another one on the same worker; the row was not written.",
        "Compare the port mappings of both in NAME-port-allocations, and delete the Pod that should not have the port.",
    ),
    "WorkerNotReady": Reason("The worker has not answered since the provider started.", "See the CMLWorker."),
    "ContentMissing": Reason(
        "The content that the lablet began with is gone.", "Delete the Pod; its successor takes the current version."
    ),
    "LabQueued": Reason(
        "CML has queued devices: it lacks CPU, memory or node licences.",
        "Correct spec.capacity of the CMLWorker if this happens often; stop foreign labs; or wait.",
    ),
    "ImportRefused": Reason(
        "CML refused the topology; the message is CML's.", "Correct the LabletDefinition's topology."
    ),
    "StartRefused": Reason(
        "CML refused to start the lab; the message is CML's.", "Do what it says, for instance about licences."
    ),
    "NoLDSDeployment": Reason(
        "No deployment of the Lab Delivery System can take the lablet's session: each is disabled or full.",
        "Enable one, raise its capacity or add one in lds_deployments; or wait until sessions end.",
    ),
    "LDSDeploymentUnknown": Reason(
        "The lablet's session is on a deployment of the Lab Delivery System that is not configured any more.",
        "Put it back into lds_deployments, with `enabled: false`, until its sessions have ended.",
    ),
    "WorkerUnreachable": Reason(
        "The worker does not answer. Lablets keep their labs and turn Ready again with it.",
        "See that the worker runs and that its url can be reached from the provider.",
    ),
    "CrashLoopBackOff": Reason("The lab failed and is wiped and started afresh, as restartPolicy says, after a pause."),
    "LabStartTimeout": Reason(
        "Not every device booted within LAB_START_TIMEOUT.",
        "Look at the devices' consoles; raise LAB_START_TIMEOUT if the topology needs longer.",
    ),
    "LabCrashed": Reason("A device stopped again and again while it booted.", "Look at the device's console in CML."),
    "LabEmpty": Reason(
        "Somebody removed every device from the lab.", "Delete the Pod; leave labs with our mark alone."
    ),
    "LabLost": Reason("Somebody else deleted the lab on the worker.", "Leave labs with our mark alone."),
    "NeedsAttention": Reason(
        "The lab does not come back, and somebody may have worked in it: it is kept as it is.",
        "Look at it on the worker; have it wiped with `kubectl lablet reset POD`, or delete the Pod.",
    ),
    "LDSUnavailable": Reason(
        "The Lab Delivery System does not answer, or answers with errors; it is asked again.",
        "See that the deployment that the message names runs and can be reached from the provider.",
    ),
    "LDSRefused": Reason(
        "The Lab Delivery System refuses what the lablet needs; the message is its own.",
        "Correct what it names: the form (spec.formQualifiedName), the token, the timeslot.",
    ),
    "DeviceSecretInvalid": Reason(
        "The Secret with the devices' credentials is missing or wrong.",
        "Create or correct the Secret that spec.deviceSecretName names, in the provider's namespace.",
    ),
    "GraderUnavailable": Reason(
        "The grader does not answer; what was collected is kept, and it is asked again.",
        "See that VKPROVIDER_GRADER_URL can be reached from the provider.",
    ),
    "ApiUnavailable": Reason(
        "The API server does not answer what the provider asks or writes for this Pod; it is tried again.",
        "If it lasts, look at the API server and at the provider's log.",
    ),
    "ApiRefused": Reason(
        "The API server refuses what the provider writes for this Pod; it is tried again.",
        "Do what the message says; if the provider lacks a right, apply its manifests again.",
    ),
    "GraderRefused": Reason("The grader refuses what it is given; the message is its own.", "Do what it says."),
    "StoppedTooLong": Reason("The lablet stayed stopped longer than it may; it has phase Failed."),
    "NotPassed": Reason("The learner's work was graded and did not pass; phase Failed, exit code 1."),
    "DeviceStopped": Reason("This device is off.", "It is started again with the lab's recovery."),
    "UnknownState": Reason(
        "CML reports a state of a device that vkprovider does not know.", "Report it, with the CML version."
    ),
    "ComputeDisconnected": Reason(
        "A compute host of the CML cluster is away.", "Bring it back; its devices continue by themselves."
    ),
    "DeadlineExceeded": Reason("The Pod ran longer than its activeDeadlineSeconds; it has phase Failed."),
}
"""Waiting reasons of a Pod that cannot go on by itself, or was stopped; also Warning Events."""

HAPPENED: Final = {
    "ImageChangeIgnored": Reason(
        "Somebody changed the image of a bound Pod; the lablet keeps the version that it began with.",
        "Change the image in the Pod's template, or delete the Pod.",
    ),
    "AnnotationInvalid": Reason(
        "An annotation of the Pod cannot be read; it counts as not set.", "Write it as the message says."
    ),
    "SessionReady": Reason("The learner's session is made and knows the devices."),
    "SessionArchived": Reason("The learner's session is over for good."),
    "Graded": Reason("What the learner leaves was graded."),
    "Collected": Reason("What the learner leaves was kept; get it with `kubectl lablet configs POD`."),
    "NotKept": Reason(
        "The configurations of some devices could not be read before the lab was stopped; the message says why.",
        "What others hold is kept. Look into the worker's own logs.",
    ),
    "Created": Reason("The lab was imported."),
    "Started": Reason("The lab was told to start."),
    "Ready": Reason("All devices booted."),
    "Recovered": Reason("All devices booted again after a restart."),
    "BackOff": Reason("A recovery did not last; the next one waits longer.", "Look at the device's console in CML."),
    "Adopted": Reason("After a crash of the provider, the lab of this Pod was found on the worker."),
    "Killing": Reason("The Pod was deleted; its lab is being removed."),
    "Completed": Reason("The lablet ended on request, or at the end of the learner's time; phase Succeeded."),
    "Passed": Reason("The learner's work was graded and passed; phase Succeeded, exit code 0."),
    "SessionStarted": Reason("The learner has logged in."),
    "SessionEnded": Reason("The learner's session has ended; what is left of it is collected."),
    "TimeslotEnded": Reason("The learner's timeslot is over; what is left of it is collected."),
    "Collecting": Reason("Somebody asked for the learner's work to be collected."),
    "Stopping": Reason("Somebody asked for the lab to be stopped."),
    "BackToPool": Reason("The learner's time is over, and the lablet goes back to its pool as a warm one."),
    "Deleted": Reason("The Pod was deleted before its end, and a finalizer keeps what is left of it."),
    "PodCompleted": Reason("Condition Ready of a Pod with phase Succeeded."),
    "PodFailed": Reason("Condition Ready of a Pod with phase Failed."),
}
"""Events and conditions of a Pod that tell what happened."""

CONDITIONS: Final = {
    "Initialized": Reason("vkprovider has taken the Pod up. Nothing else is initialized."),
    "ContainersReady": Reason("The same as Ready."),
    "vkprovider.io/LabImported": Reason(
        "The Pod's lab is on the worker.", "While it is False, the waiting reason of the container `lab` says why."
    ),
    "vkprovider.io/LabConverged": Reason(
        "Every device of the lab has booted, and the worker answers.", "While it is False, see the condition Ready."
    ),
    "vkprovider.io/PortsOpen": Reason(
        "A learner can reach the lab's ports on the worker.", "While it is False, the message says what to set."
    ),
    "vkprovider.io/SessionReady": Reason("The learner's session exists and knows the devices."),
    "vkprovider.io/SessionStarted": Reason("The learner has logged in."),
    "Refreshed": Reason("Of a LabletDefinition: how the last refresh went.", "While it is False, see its reason."),
    "NetworkUnavailable": Reason("Of a Node: always False (`RouteCreated`), lablets use the worker's own network."),
    "MemoryPressure": Reason("Of a Node: always False (`NoMemoryPressure`), CML admits labs by itself."),
    "DiskPressure": Reason("Of a Node: always False (`NoDiskPressure`), CML admits labs by itself."),
    "PIDPressure": Reason("Of a Node: always False (`NoPIDPressure`), CML admits labs by itself."),
}
"""Types of conditions that vkprovider writes, beside Ready, of which the other tables tell."""

WORKERS: Final = {
    "TakenOver": Reason(
        "The replica that acted for the worker was silent for two thirds of LEADER_LEASE_TTL; another one goes on.",
        "Nothing, if it was stopped; else look at why it ended: its log, `kubectl describe pod` of the provider.",
    ),
    "WorkerReady": Reason("The worker answers and can be used."),
    "Starting": Reason("The provider has not asked the worker yet."),
    "WorkerUnreachable": Reason(
        "The worker did not answer several probes in a row.",
        "See that it runs and that spec.url can be reached from the provider. Nothing is deleted meanwhile.",
    ),
    "WorkerError": Reason("The worker answers with errors; the message is CML's.", "Look into the worker's own logs."),
    "CredentialsInvalid": Reason(
        "The Secret is missing or incomplete, or CML refuses its username and password.",
        "Create or correct the Secret that spec.credentialsSecretName names, in the provider's namespace.",
    ),
    "CertificateInvalid": Reason(
        "The worker's certificate is expired, self-signed or for another host.",
        "Renew it, or put its authority into spec.tls.caBundle.",
    ),
    "UnsupportedVersion": Reason("The worker runs a CML that is too old or too new.", "Use CML 2.8, 2.9 or 2.10."),
    "CapacityUnknown": Reason(
        "Nobody says how much the worker can hold.", "Set spec.capacity, or spec.stats: On to ask CML."
    ),
    "WorkerUrlInvalid": Reason("spec.url is no URL of a CML controller.", "Write for instance https://cml.example.com"),
    "TunnelUnsupported": Reason(
        "spec.tunnel names a tunnel that this version does not have; nothing is sent by another way.",
        "Set spec.tunnel: direct if the provider can reach spec.url itself.",
    ),
    "CaBundleInvalid": Reason("spec.tls.caBundle is no PEM certificate.", "Put PEM certificates there."),
    "SpecInvalid": Reason("A field of spec is wrong.", "Correct the field that the message names."),
    "NodeConflict": Reason(
        "A Node or Lease of the worker's name exists and is not of this installation; it is not touched.",
        "Rename the CMLWorker, or delete that Node.",
    ),
    "ClaimStoreInvalid": Reason(
        "The ConfigMap with the worker's claims was changed by somebody else.",
        "Restore NAME-port-allocations in the provider's namespace; nothing is deleted on doubt.",
    ),
    "NodeRefused": Reason(
        "The API server refuses the worker's Node, or the provider's rights do not suffice.",
        "Do what the message says.",
    ),
    "AddressUnresolved": Reason(
        "The worker's address has no IP address, so its lablets have none either.",
        "Correct spec.address, or the resolver of the machine that the provider runs on.",
    ),
    "ClaimsRefused": Reason(
        "The API server refuses the worker's claims, or the provider's rights do not suffice. No lablet begins on it.",
        "Do what the message says; `vkprovider doctor` names missing rights.",
    ),
    "ClaimStoreFull": Reason("The claims of the worker do not fit into one ConfigMap.", "Use more workers."),
    "InUse": Reason(
        "The CMLWorker is being deleted and waits for its lablets; its Node is cordoned.",
        "Delete their Pods, or annotate vkprovider.io/abandon=true to leave their labs behind.",
    ),
    "Abandoned": Reason("The CMLWorker was deleted and left labs behind; the Event names them.", "Delete them in CML."),
    "UnclaimedLab": Reason(
        "A lab carries our mark, but no claim names it: a saved copy, or a restored etcd. It is left alone.",
        "Delete it in CML if nobody needs it.",
    ),
}
"""Condition Ready and Events of a CMLWorker; the Node's Ready says the same."""

DEFINITIONS: Final = {
    "ContentReady": Reason("The content is stored, and Pods can run it."),
    "ContentStored": Reason("A new version of the content was stored."),
    "VersionUnchanged": Reason(
        "A refresh found the version that is current already, and took nothing.",
        "To take another content under the same version: `kubectl lablet refresh NAME --force`.",
    ),
    "Refreshing": Reason("The content package is being read."),
    "PackageNotFound": Reason(
        "The object store has no such bucket or package.",
        "Upload it, or correct spec.source.objectStore; then `kubectl lablet refresh NAME`.",
    ),
    "PackageForbidden": Reason(
        "The object store refuses the provider's keys.",
        "Correct S3_ACCESS_KEY and S3_SECRET_KEY, or their rights; then `kubectl lablet refresh NAME`.",
    ),
    "PackageInvalid": Reason(
        "The content package is not what it should be; what was stored before stays.",
        "Correct what the message names, upload it, and `kubectl lablet refresh NAME`.",
    ),
    "PackageTooLarge": Reason(
        "The content package exceeds a limit, packed or unpacked; what was stored before stays.",
        "Make it smaller, or raise the setting that the message names; then `kubectl lablet refresh NAME`.",
    ),
    "ContentStoreUnavailable": Reason(
        "The object store does not answer; it is asked again. Lablets do not need it.",
        "See that it runs and that VKPROVIDER_CONTENT_STORE and S3_ENDPOINT name it.",
    ),
    "NoContent": Reason("No content was read yet."),
    "SourceNotFound": Reason("The ConfigMap or its key does not exist.", "Create it, or correct spec.source."),
    "SourceForbidden": Reason(
        "The provider may not read that ConfigMap.", "Bind ClusterRole vkprovider-topology-reader in its namespace."
    ),
    "TopologyInvalid": Reason("The topology is not what CML reads; the message names the place.", "Correct it."),
    "ResourcesUnknown": Reason(
        "A node definition of the topology has unknown CPU and memory; there is no RuntimeClass meanwhile.",
        "Set cpus and ram on the device, list it in VKPROVIDER_NODE_DEFINITIONS, or set spec.resources.",
    ),
    "ContentTooLarge": Reason("The content does not fit into one object.", "Make it smaller."),
    "ContentInvalid": Reason(
        "A stored content is damaged.", "Delete that ConfigMap and apply the LabletDefinition again."
    ),
    "RuntimeClassConflict": Reason(
        "A RuntimeClass of that name exists and is not ours; it is not touched.",
        "Rename the LabletDefinition, or delete that RuntimeClass.",
    ),
    "ApiRefused": Reason("The API server refused an object of this definition.", "Do what the message says."),
    "SpecInvalid": Reason("A field of spec is wrong.", "Correct the field that the message names."),
    "InUse": Reason(
        "The definition is being deleted and waits for its lablets; new ones are refused.",
        "Delete their Pods, or annotate vkprovider.io/abandon=true.",
    ),
    "Deleting": Reason("The definition is being deleted."),
}
"""Condition Ready and Events of a LabletDefinition."""

STARTING: Final = {
    "KeptInvalid": Reason("What was kept of a lablet is damaged.", "Delete that ConfigMap."),
    "SettingInvalid": Reason("A file that a setting names is missing or wrong.", "Correct it; see settings.md."),
    "KubeconfigMissing": Reason("There is no kubeconfig at that path.", "Set KUBECONFIG."),
    "KubeconfigInvalid": Reason("The kubeconfig cannot be used.", "Correct what the message names."),
    "KubeconfigUnsupported": Reason("The kubeconfig uses what vkprovider does not.", "Use another user or context."),
    "ServiceAccountInvalid": Reason("The Pod's ServiceAccount files cannot be read.", "Mount the ServiceAccount."),
    "TokenInvalid": Reason("The token holds what no HTTP header may hold.", "Write the token again."),
    "TokenMissing": Reason("The token file cannot be read.", "Correct its path or its rights."),
}
"""What ends `vkprovider run` at once."""

DOCTOR: Final = {
    "ApiUnavailable": Reason("The API server does not answer.", "Check the context, the network and your login."),
    "UnsupportedKubernetes": Reason("The API server is older than Kubernetes 1.30.", "Upgrade the cluster."),
    "VersionUnknown": Reason("The API server tells a version that is none."),
    "CrdMissing": Reason(
        "A custom resource definition is not installed.", "kubectl apply --server-side -k manifests/crds"
    ),
    "CrdDiffers": Reason(
        "A custom resource definition is of another version of vkprovider.",
        "Apply the one of this version, or use the other version's doctor.",
    ),
    "CrdNotEstablished": Reason("The API server does not serve a custom resource (yet).", "Do what the message says."),
    "NamespaceMissing": Reason("The provider's namespace does not exist.", "kubectl apply -k manifests/base"),
    "ServiceAccountMissing": Reason("The provider's ServiceAccount does not exist.", "kubectl apply -k manifests/base"),
    "RightsMissing": Reason("The provider's ServiceAccount lacks rights.", "kubectl apply -k manifests/base"),
    "RightsUnknown": Reason("You may not ask what the ServiceAccount may do.", "Ask as a cluster admin."),
    "NotReadable": Reason("You may not read this.", "Ask as a cluster admin."),
    "SecretForbidden": Reason("You may not read the worker's Secret.", "Ask as a cluster admin."),
    "NoReplica": Reason("No replica of the provider lives: nothing is acted upon.", "Start it; look at its log."),
    "ReplicaSilent": Reason("A replica ended without leaving; the others take its nodes over."),
    "NoOwner": Reason("No living replica owns a worker.", "Wait LEADER_LEASE_TTL; look at the provider's log."),
    "LeaseExpired": Reason(
        "The Lease of a Node is not renewed in time: the Node turns NotReady.",
        "See that its replica reaches the API server; look at its log.",
    ),
    "ClockSkew": Reason(
        "The clock of the API server, a replica or a worker differs from that of this machine.",
        "Run a time service on both.",
    ),
    "ClockUnknown": Reason("You may not ask the API server for its time.", "Ask as a cluster admin."),
    "NoWorker": Reason("There is no CMLWorker.", "Create one."),
    "NotObserved": Reason("The provider has not looked at the object (or its last change).", "See that it runs."),
    "NotReady": Reason("The object is not Ready and does not say why.", "Look at the provider's log."),
    "NodeMissing": Reason("A CMLWorker is Ready and has no Node.", "Look at the provider's log."),
    "RuntimeClassMissing": Reason(
        "A LabletDefinition is Ready and has no RuntimeClass.", "Look at the provider's log."
    ),
    "SameUrl": Reason("Two CMLWorkers are one and the same controller.", "Keep one CMLWorker per controller."),
    "ForeignLabs": Reason("There are labs of others on the worker; they are never touched."),
    "Cordoned": Reason("Somebody cordoned the Node.", "kubectl uncordon"),
    "NotAdministrator": Reason(
        "The worker's user is no administrator of CML: labs of others are neither seen nor counted.",
        "Make it one, unless only vkprovider uses the worker.",
    ),
    "LicenceInvalid": Reason("CML is not licensed and starts no devices.", "Register it: Tools, Licensing."),
    "LicencesFew": Reason(
        "`capacity.labNodes` promises more devices than the worker's licence lets run.",
        "Set it to what the message says, or license more.",
    ),
    "PortsNotOpened": Reason(
        "The worker's port range is not what PATty, CML's port forwarder, opens unless told otherwise.",
        "Set `portRange` to the ports that PATty opens on the worker.",
    ),
    "UnreachableFromHere": Reason("The provider reaches the worker, the doctor's machine does not."),
    "Unschedulable": Reason(
        "The scheduler finds no Node for a lablet; the message is its own.",
        "Add workers of its environment, or wait until lablets end.",
    ),
    "Stuck": Reason("A Pod is on its way for a quarter of an hour.", "Look at the CMLWorker and the provider's log."),
    "Failed": Reason("A Pod ended with phase Failed; the message says why.", "Delete it when nobody needs it."),
}
"""What only `vkprovider doctor` says."""

TABLES: Final = {
    "A Pod on its way (waiting reason)": PROGRESS,
    "A Pod in trouble (waiting reason, Warning Event)": TROUBLE,
    "What happened to a Pod (Event, condition)": HAPPENED,
    "Conditions of a Pod, Node or definition": CONDITIONS,
    "CMLWorker and Node (condition Ready, Event)": WORKERS,
    "LabletDefinition (condition Ready, Event)": DEFINITIONS,
    "Start of the provider (exit)": STARTING,
    "Only `vkprovider doctor`": DOCTOR,
}
"""Heading: its reasons."""
