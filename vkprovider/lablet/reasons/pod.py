"""Reasons for which a container of a Pod waits."""

from vkprovider.platform.reasons import Reasons, Trait


class Progress(Reasons):
    """Waiting reasons of a Pod that is on its way."""

    ALLOCATING_PORTS = (
        "AllocatingPorts",
        "The lablet's row is being written into the claims of its worker.",
        "",
        Trait.DEFERRABLE,
    )
    WAITING_FOR_RELEASE = (
        "WaitingForRelease",
        "The lab of an earlier lablet is being removed from the worker to make room.",
        "",
        Trait.DEFERRABLE | Trait.PASSING,
    )
    WAITING_FOR_CLAIMS = (
        "WaitingForClaims",
        (
            "The claims of the worker were lost. Its labs are examined before a new one begins, so that none is "
            "lost or imported twice."
        ),
        "See that the worker answers; the provider's log names a lab that cannot be read.",
        Trait.DEFERRABLE | Trait.PASSING,
    )
    IMPORTING_LAB = ("ImportingLab", "The lab is being imported.", "", Trait.DEFERRABLE)
    STARTING_NODES = ("StartingNodes", "The lab's devices boot; the message counts them.", "", Trait.DEFERRABLE)
    CLEANING_UP = (
        "CleaningUp",
        "The lab is being stopped, wiped and deleted; the Pod ends when it is gone.",
        "",
        Trait.DEFERRABLE | Trait.ASKED_FOR,
    )
    WAITING_FOR_ACCESS = (
        "WaitingForAccess",
        "All devices run; before the learner's session is made, the mux is to lead to the lablet's ports.",
        "If it lasts, look whether the program that serves the mux runs: `kubectl lablet ports` shows its answer.",
        Trait.DEFERRABLE,
    )
    PROVISIONING_SESSION = (
        "ProvisioningSession",
        "All devices run; the learner's session is being made in the Lab Delivery System.",
        "",
        Trait.DEFERRABLE,
    )
    RESETTING = (
        "Resetting",
        "A reset was requested: the lab is wiped and started again; a session stays.",
        "",
        Trait.DEFERRABLE | Trait.ASKED_FOR,
    )
    RENEWING_CONTENT = (
        "RenewingContent",
        "The definition has new content: one after the other, the labs of its pool's free lablets are replaced by it.",
        "",
        Trait.DEFERRABLE | Trait.ASKED_FOR,
    )
    RETURNING_TO_POOL = (
        "ReturningToPool",
        "The learner's time is over: the lab is wiped and started again for its pool.",
        "",
        Trait.DEFERRABLE | Trait.ASKED_FOR,
    )
    LAB_STOPPED = (
        "LabStopped",
        "The lab is stopped on request; its disks are kept for VKPROVIDER_STOPPED_MAX_SECONDS (24 hours).",
        "Go on with `kubectl lablet start POD`.",
        Trait.ASKED_FOR,
    )
    DEVICE_OFF = (
        "StoppedOnRequest",
        "This device is stopped on request; the lablet is Ready without it.",
        "Start it with `kubectl lablet device start DEVICE POD`.",
        Trait.ASKED_FOR,
    )
    DEVICE_CHANGING = (
        "ChangingOnRequest",
        "This device is stopped, wiped or started on request; the lablet is Ready meanwhile.",
        "",
        Trait.DEFERRABLE | Trait.ASKED_FOR,
    )
    RECOVERING = ("Recovering", "Devices stopped on the worker; they are started again without a wipe, with back-off.")


class Trouble(Reasons):
    """Waiting reasons of a Pod that cannot go on by itself, or was stopped; also Warning Events."""

    NOT_A_LABLET = (
        "NotALablet",
        (
            "The Pod is bound to one of our Nodes, but its runtimeClassName does not name a LabletDefinition, or it "
            "has init containers. Without a runtimeClassName and a controller it has phase Failed, and takes no room. "
            "A Pod of a DaemonSet that tolerates everything is Ready, so that the DaemonSet goes on with updates; "
            "nothing of it runs, and it has no address."
        ),
        (
            "Set spec.runtimeClassName to a LabletDefinition, or remove the tolerations that admit the Pod here. For a "
            "DaemonSet: `nodeSelector: {kubernetes.io/os: linux}` in its template."
        ),
    )
    DEFINITION_MISMATCH = (
        "DefinitionMismatch",
        "The containers' images do not all name the Pod's LabletDefinition and one version of it.",
        "Write `image: NAME[:VERSION]` with the name in runtimeClassName, the same in every container.",
    )
    DEFINITION_NOT_READY = (
        "DefinitionNotReady",
        "The LabletDefinition has no usable content.",
        "Repair what `kubectl describe ldef NAME` shows; the Pod then continues by itself.",
    )
    DEFINITION_NOT_SHARED = (
        "DefinitionNotShared",
        "The definition belongs to a class, whose topology is not for the lablets of other namespaces.",
        "Ask that class to share it, `kubectl lablet define FILE --shared`, or make a definition of your own.",
    )
    ENVIRONMENT_MISMATCH = (
        "EnvironmentMismatch",
        "The definition and the worker belong to different environments.",
        "Do not set spec.nodeName; the scheduler keeps environments apart.",
    )
    UNKNOWN_VERSION = (
        "UnknownVersion",
        "The definition has no stored content of the version that the image names.",
        "Name a version that `kubectl get ldef NAME -o yaml` lists under status.versions.",
    )
    UNKNOWN_DEVICE = (
        "UnknownDevice",
        "A container has a name that is neither `lab` nor a device of the topology.",
        "Use the container names under status.devices of the LabletDefinition.",
    )
    CHARGED_TOO_LITTLE = (
        "ChargedTooLittle",
        "The Pod was admitted when the version needed less; it would use more than the scheduler counted.",
        "Delete the Pod; its successor is charged what it needs.",
    )
    OUT_OF = (
        "OutOf",
        "`OutOfcpu`, `OutOfpods` and so on: the Pod was bound past the scheduler and its worker is full.",
        "Do not set spec.nodeName; or wait until a lablet of this worker ends.",
        Trait.PREFIX,
    )
    ACCESS_MISSING = (
        "AccessMissing",
        "The mux does not lead to a port of the lablet, so that the Lab Delivery System is told the worker's address.",
        "Do what the mux's answer says: `kubectl lablet ports` shows it. A session that exists stays as it is.",
    )
    NOT_EXPOSABLE = (
        "NotExposable",
        "The definition lends the lablet's ports to a mux, which cannot lead to the worker's address.",
        "Set spec.address of the CMLWorker to what learners reach.",
    )
    PORTS_RESTING = (
        "PortsResting",
        "The worker's last free ports were lent to a mux; so that nobody meets another lablet there, they rest first.",
        "Wait until the time in the message; or widen spec.portRange of the CMLWorker.",
        Trait.PASSING,
    )
    PORTS_UNKNOWN = (
        "PortsUnknown",
        "The claims were lost, and the tags of the lablet's lab do not say which port is which. The lab is left alone.",
        "Delete the Pod; its successor gets a new lab.",
    )
    CLAIM_STORE_FULL = (
        "ClaimStoreFull",
        "The claims of the worker fill their ConfigMap; this lablet's row does not fit, those of others are written.",
        "Use more workers; or wait until a lablet of this worker ends.",
    )
    WORKER_NOT_READY = (
        "WorkerNotReady",
        (
            "The worker has not answered since the provider started, or its labs are still being looked at: the ports "
            "of those that no claim names are given to no lablet."
        ),
        "See the CMLWorker.",
        Trait.PASSING,
    )
    CONTENT_MISSING = (
        "ContentMissing",
        "The content that the lablet began with is gone.",
        "Delete the Pod; its successor takes the current version.",
    )
    LAB_QUEUED = (
        "LabQueued",
        "CML has queued devices: it lacks CPU, memory or node licences.",
        "Correct spec.capacity of the CMLWorker if this happens often; stop foreign labs; or wait.",
        Trait.DEFERRABLE,
    )
    CREATE_CONTAINER_CONFIG_ERROR = (
        "CreateContainerConfigError",
        (
            "The environment of a container cannot be resolved: a ConfigMap or Secret is missing or may not be read, "
            "or a value cannot be used. The lab is not imported before; the Pod's Events give the particular reason."
        ),
        "Do what the message says; the lablet then continues by itself within half a minute.",
    )
    IMPORT_REFUSED = (
        "ImportRefused",
        "CML refused the topology; the message is CML's.",
        (
            "Correct the LabletDefinition's topology and delete the Pod, because a lablet keeps the version that it "
            "began with. Until then the import is tried again, less and less often: at last every five minutes."
        ),
    )
    START_REFUSED = (
        "StartRefused",
        "CML refused to start the lab; the message is CML's.",
        "Do what it says, for instance about licences.",
    )
    NO_LDS_DEPLOYMENT = (
        "NoLDSDeployment",
        "No deployment of the Lab Delivery System can take the lablet's session: each is disabled or full.",
        "Enable one, raise its capacity or add one in lds_deployments; or wait until sessions end.",
    )
    LDS_DEPLOYMENT_UNKNOWN = (
        "LDSDeploymentUnknown",
        "The lablet's session is on a deployment of the Lab Delivery System that is no longer configured.",
        "Put it back into lds_deployments, with `enabled: false`, until its sessions have ended.",
    )
    WORKER_UNREACHABLE = (
        "WorkerUnreachable",
        (
            "The worker does not answer, refuses the provider's login, or cannot be trusted; the message says which. "
            "Lablets keep their labs and turn Ready again with it."
        ),
        "READY and REASON of `kubectl get cmlw` say what is wrong with the worker, and its message what to do.",
        Trait.SILENCE,
    )
    CRASH_LOOP_BACK_OFF = (
        "CrashLoopBackOff",
        "The lab failed and is wiped and started again, as restartPolicy says, after a pause.",
    )
    LAB_START_TIMEOUT = (
        "LabStartTimeout",
        "A device did not boot in the time that it has, counted from its own start; the message says how long that is.",
        (
            "Look at its console. If it only needs longer, raise LAB_START_TIMEOUT of the provider if that is set, for "
            "it goes before, else spec.bootTimeoutSeconds of the LabletDefinition."
        ),
    )
    LAB_CRASHED = (
        "LabCrashed",
        "A device stopped again and again while it booted.",
        "Look at the device's console in CML.",
    )
    LAB_EMPTY = (
        "LabEmpty",
        (
            "All devices were removed from the lab on the worker. After five minutes, or LAB_START_TIMEOUT if that is "
            "set, the lab is imported again, "
            "or kept (`NeedsAttention`) if a learner may have worked in it."
        ),
        "Do not change labs that carry our mark.",
    )
    LAB_LOST = (
        "LabLost",
        "The lab was deleted on the worker by another client.",
        "Do not change labs that carry our mark.",
    )
    NEEDS_ATTENTION = (
        "NeedsAttention",
        (
            "The lab does not come back, and a learner may have worked in it: it is kept as it is. Or it is in doubt "
            "which lab on the worker is the lablet's and which is a copy: none is touched, and none is imported."
        ),
        (
            "Inspect it on the worker; wipe it with `kubectl lablet reset POD`, or delete the Pod. If it is in doubt, "
            "remove what is a copy, with the command in the Event UnclaimedLab of the CMLWorker."
        ),
    )
    LDS_UNAVAILABLE = (
        "LDSUnavailable",
        "The Lab Delivery System does not answer, or answers with errors; it is retried.",
        "See that the deployment that the message names runs, and that the NetworkPolicy leads there (install.md).",
    )
    LDS_REFUSED = (
        "LDSRefused",
        "The Lab Delivery System refuses what the lablet needs; the message is from it.",
        "Correct what it names: the form (spec.formQualifiedName), the token, the timeslot.",
    )
    DEVICE_SECRET_INVALID = (
        "DeviceSecretInvalid",
        "The Secret with the devices' credentials is missing or wrong.",
        "Create or correct the Secret that spec.deviceSecretName names, in the namespace of logins.",
    )
    SECRET_NOT_ALLOWED = (
        "SecretNotAllowed",
        "The Secret with the devices' credentials is a worker's, or not labelled for devices; nothing of it was used.",
        "If learners may see it, run the command of the message; else name another in spec.deviceSecretName.",
    )
    GRADER_UNAVAILABLE = (
        "GraderUnavailable",
        "The grader does not answer; the collected work is kept, and the request is retried.",
        "See that VKPROVIDER_GRADER_URL answers, and that the NetworkPolicy leads there (install.md).",
    )
    API_UNAVAILABLE = (
        "ApiUnavailable",
        "The API server does not answer the provider's requests for this Pod; they are retried.",
        "If it lasts, look at the API server and at the provider's log.",
    )
    API_REFUSED = (
        "ApiRefused",
        "The API server refuses what the provider writes for this Pod; the write is retried.",
        "Do what the message says; if the provider lacks a right, apply its manifests again.",
    )
    GRADER_REFUSED = (
        "GraderRefused",
        "The grader refuses the request; the message is from it.",
        "Do what it says.",
    )
    STOPPED_TOO_LONG = ("StoppedTooLong", "The lablet stayed stopped longer than allowed; it has phase Failed.")
    NOT_PASSED = ("NotPassed", "The learner's work was graded and did not pass; phase Failed, exit code 1.")
    DEVICE_STOPPED = ("DeviceStopped", "This device is off.", "It is started again with the lab's recovery.")
    UNKNOWN_STATE = (
        "UnknownState",
        (
            "CML reports a state of a device that vkprovider does not know. After five minutes, or LAB_START_TIMEOUT "
            "if that is set, the lab is wiped and started again, or kept (`NeedsAttention`) if a learner may have "
            "worked in it."
        ),
        "Report it, with the CML version.",
    )
    COMPUTE_DISCONNECTED = (
        "ComputeDisconnected",
        (
            "A compute host of the CML cluster is disconnected. After five minutes, or LAB_START_TIMEOUT if that is "
            "set, the lab is wiped and started again, or kept (`NeedsAttention`) if a learner may have worked in it; "
            "with its host it is Ready again."
        ),
        "Bring it back; its devices continue by themselves.",
    )
    DEADLINE_EXCEEDED = ("DeadlineExceeded", "The Pod ran longer than its activeDeadlineSeconds; it has phase Failed.")
