"""Reasons of a CMLWorker with its Node, and of a LabletDefinition."""

from vkprovider.platform.reasons import Reasons, Trait


class WorkerReason(Reasons):
    """Condition Ready and Events of a CMLWorker; the Ready condition of its Node has the same."""

    TAKEN_OVER = (
        "TakenOver",
        "The replica that acted for the worker was silent for two thirds of LEADER_LEASE_TTL; another has taken over.",
        "Nothing, if it was stopped; else look at why it ended: its log, `kubectl describe pod` of the provider.",
    )
    WORKER_READY = ("WorkerReady", "The worker answers and can be used.")
    STARTING = ("Starting", "The provider has not probed the worker yet.")
    WORKER_UNREACHABLE = (
        "WorkerUnreachable",
        "The worker did not answer several probes in a row.",
        "See that it runs and that spec.url can be reached from the provider. Nothing is deleted meanwhile.",
        Trait.SILENCE,
    )
    WORKER_ERROR = (
        "WorkerError",
        "The worker answers with errors; the message is CML's.",
        "Look into the worker's own logs.",
    )
    CREDENTIALS_INVALID = (
        "CredentialsInvalid",
        "The Secret is missing or incomplete, or CML refuses its username and password.",
        (
            "Create or correct the Secret that spec.credentialsSecretName names, in the namespace of logins. While "
            "Ready is True an earlier login still serves: set the Secret's password in CML, or correct the Secret."
        ),
    )
    SECRET_NOT_ALLOWED = (
        "SecretNotAllowed",
        "The Secret is not labelled for workers, or does not name the host of spec.url; its password was not sent.",
        "If the host may have the password, run the commands of the message; else correct spec.url.",
    )
    CERTIFICATE_INVALID = (
        "CertificateInvalid",
        "The worker's certificate is expired, self-signed, of an unknown authority or for another host.",
        (
            "Do what the message says: renew it, or trust it by spec.tls.caBundle; behind an agent by the file that "
            "VKPROVIDER_AGENT_CA_FILE of the agent names, where spec.tls has no effect."
        ),
    )
    LABS_NOT_SEEN = (
        "LabsNotSeen",
        (
            "CML's user or spec.url is another one, and does not see all the labs that the claims name. None is taken "
            "for lost, imported again or removed."
        ),
        (
            "Make the user an administrator of CML, or put back the former user or url. If those labs are given up for "
            "good, abandon the CMLWorker and create it again, as the message says."
        ),
    )
    PLAIN_TEXT = (
        "PlainText",
        "Of the condition TransportInsecure: spec.url is http, so password and labs can be read on the way.",
        "Use https, with spec.tls.caBundle if the certificate is self-signed.",
    )
    NOT_VERIFIED = (
        "NotVerified",
        "Of the condition TransportInsecure: the certificate is not verified, so an impostor would get the password.",
        "Put the certificate, or its authority, into spec.tls.caBundle and remove spec.tls.insecureSkipVerify.",
    )
    UNSUPPORTED_VERSION = (
        "UnsupportedVersion",
        "The worker runs a CML that is too old or too new.",
        "Use CML 2.8, 2.9 or 2.10.",
    )
    SAME_CONTROLLER = (
        "SameController",
        "Another CMLWorker, created earlier, is the same CML controller. No lablet begins on this one.",
        "Delete one of the two CMLWorkers.",
    )
    SAME_ADDRESS = (
        "SameAddress",
        (
            "Learners reach another CMLWorker, created earlier, at the same address, and the port ranges of both "
            "overlap: two learners would get one address and port. No lablet begins on this one; those that run go on."
        ),
        (
            "Give one of the two a spec.portRange that the other does not have, and that its CML and the NAT before "
            "it open; or set spec.address, if learners reach it elsewhere."
        ),
    )
    CAPACITY_UNKNOWN = (
        "CapacityUnknown",
        "The worker's capacity is not known.",
        "Set spec.capacity, or spec.stats: On to ask CML.",
    )
    CAPACITY_TOO_SMALL = (
        "CapacityTooSmall",
        "An amount in spec.capacity is zero, or so small that its unit must have been forgotten: no lablet fits.",
        "Correct the amount that the message names, such as memory: 256Gi, or leave it out with spec.stats: On.",
    )
    WORKER_URL_INVALID = (
        "WorkerUrlInvalid",
        "spec.url is not the URL of a CML controller.",
        "Write for instance https://cml.example.com",
    )
    TUNNEL_NOT_CONFIGURED = (
        "TunnelNotConfigured",
        "spec.tunnel names a tunnel that the provider's settings do not configure; nothing is sent another way.",
        "Set VKPROVIDER_TUNNEL_MQTT_URL or VKPROVIDER_TUNNEL_HTTP_TOKENS (docs/tunnels.md), or use tunnel: direct.",
    )
    AGENT_AWAY = (
        "AgentAway",
        "The agent beside the worker has left, is silent, or was never heard.",
        "See that `vkprovider agent` runs beside the worker, and what it logs. Nothing is deleted meanwhile.",
        Trait.SILENCE,
    )
    AGENT_CONFLICT = (
        "AgentConflict",
        "Two agents bear the name of the worker. The one that was there first is used, the other one is refused.",
        "Stop one of them, or give it the name of another CMLWorker (VKPROVIDER_AGENT_NAME).",
        Trait.LASTING,
    )
    AGENT_REFUSED = (
        "AgentRefused",
        "An agent with the worker's name uses another tunnel than spec.tunnel, or its hello cannot be read.",
        "Correct spec.tunnel, or the agent's settings and version.",
        Trait.LASTING,
    )
    AWAITING_APPROVAL = (
        "AwaitingApproval",
        "An agent presented itself and the CMLWorker was made for it. No lablet begins on it; its Node is cordoned.",
        "`kubectl lablet approve NAME` if you know it; else stop the agent, then delete the CMLWorker.",
    )
    CA_BUNDLE_INVALID = (
        "CaBundleInvalid",
        "spec.tls.caBundle is not a PEM certificate.",
        "Put PEM certificates there.",
    )
    SPEC_INVALID = ("SpecInvalid", "A field of spec is wrong.", "Correct the field that the message names.")
    NODE_CONFLICT = (
        "NodeConflict",
        "A Node or Lease with the worker's name belongs to another installation; it is not touched.",
        "Rename the CMLWorker, or delete that Node, and its Lease in the namespace kube-node-lease.",
        Trait.FOREIGN,
    )
    CLAIM_STORE_INVALID = (
        "ClaimStoreInvalid",
        "The ConfigMap with the worker's claims was changed by another client.",
        "Restore NAME-port-allocations in the provider's namespace; nothing is deleted on doubt.",
    )
    NODE_REFUSED = (
        "NodeRefused",
        "The API server refuses the worker's Node, or the provider's rights do not suffice.",
        "Do what the message says.",
    )
    ADDRESS_UNRESOLVED = (
        "AddressUnresolved",
        "The worker's address does not resolve to an IP address, so its lablets have none either.",
        "Correct spec.address, or the resolver of the machine that the provider runs on.",
        Trait.LASTING,
    )
    CLAIMS_LOST = (
        "ClaimsLost",
        (
            "The ConfigMap with the worker's claims is gone, and a lab that may be a lablet's cannot be read. No "
            "lablet begins or ends; those that run go on."
        ),
        (
            "Have CML show the lab that the message names, or delete it in CML; or put the former user or url back. "
            "The claims are then rebuilt. If its labs are given up for good, abandon the CMLWorker and create it again."
        ),
        Trait.LASTING,
    )
    CLAIMS_REFUSED = (
        "ClaimsRefused",
        (
            "The API server refuses the worker's claims, or the provider's rights do not suffice. No lablet "
            "begins on it."
        ),
        "Do what the message says; `vkprovider doctor` names missing rights.",
    )
    CLAIM_STORE_FULL = (
        "ClaimStoreFull",
        "The claims of the worker do not fit into one ConfigMap.",
        "Use more workers.",
    )
    IN_USE = (
        "InUse",
        "The CMLWorker is being deleted and waits for its lablets; its Node is cordoned.",
        (
            "Delete the Pods that the message names. Annotate vkprovider.io/abandon=true only if the worker never "
            "comes back: its labs stay behind in CML, and that cannot be undone."
        ),
    )
    ABANDONED = (
        "Abandoned",
        "The CMLWorker was deleted and left labs behind; the Event names them.",
        "Delete them in CML.",
    )
    UNCLAIMED_LAB = (
        "UnclaimedLab",
        (
            "A lab carries our mark, but no claim names it: a copy that somebody saved, or what was left when claims "
            "were lost. It is left alone, and its ports are given to no lablet."
        ),
        "If nobody needs it, delete it on CML's page, or with the command in the Event.",
        Trait.LASTING,
    )


class DefinitionReason(Reasons):
    """Condition Ready and Events of a LabletDefinition."""

    CONTENT_READY = ("ContentReady", "The content is stored, and Pods can run it.")
    CONTENT_STORED = ("ContentStored", "A new version of the content was stored.")
    VERSION_UNCHANGED = (
        "VersionUnchanged",
        "A refresh found the current version again, and stored nothing.",
        "To store other content under the same version: `kubectl lablet refresh NAME --force`.",
    )
    CONTENT_REPLACED = (
        "ContentReplaced",
        "Other content was stored under the current version: an image with that version now names another lab.",
        "Raise spec.version with each change of the content, so that `kubectl rollout undo` finds the earlier one.",
    )
    TAG_UNCLEAR = (
        "TagUnclear",
        "A tag looks like a port tag but requests no port (condition Impeded).",
        "Write it as the message says; or give a tag that is not meant for a port another name.",
    )
    IMPORT_DOUBTFUL = (
        "ImportDoubtful",
        "The topology has something that CML's schema does not allow, so an import may fail (condition Impeded).",
        "Correct or remove what the message names, and apply it with a new version.",
    )
    PAT_UNREACHABLE = (
        "PatUnreachable",
        "A device has a `pat:` tag, and no link joins it with an external connector (condition Impeded).",
        "Link the device, directly or over switches, to an external connector with NAT; or remove the tag.",
    )
    TOPOLOGY_TOO_NEW = (
        "TopologyTooNew",
        "No worker of the definition's environment has a CML that imports the topology's version (condition Impeded).",
        "Add or upgrade a worker, or export the lab from a CML of the workers' release.",
    )
    TOO_LARGE = (
        "TooLarge",
        "No worker of the definition's environment is large enough for one lablet (condition Impeded).",
        "Make the lab smaller, lower spec.resources, or raise spec.capacity of a CMLWorker.",
    )
    DEVICE_SECRET_INVALID = (
        "DeviceSecretInvalid",
        "The Secret with the devices' credentials is missing or wrong (condition Impeded).",
        "Create or correct the Secret that spec.deviceSecretName names, in the namespace of logins.",
    )
    SECRET_NOT_ALLOWED = (
        "SecretNotAllowed",
        "The Secret with the devices' credentials is a worker's, or not labelled for devices (condition Impeded).",
        "If learners may see it, run the command of the message; else name another in spec.deviceSecretName.",
    )
    EXPOSED_PORT_UNKNOWN = (
        "ExposedPortUnknown",
        "The definition lends ports to a mux that its topology does not have (condition Impeded).",
        "Correct spec.expose.ports: `kubectl get ldef NAME -o jsonpath='{.status.portTemplate[*].name}'` names them.",
    )
    TOO_MANY_PORTS = (
        "TooManyPorts",
        "The topology's port tags need more external ports than one lablet may have, so it has no RuntimeClass.",
        "Remove port tags from the topology, or raise PORTS_PER_INSTANCE_MAX.",
    )
    REFRESHING = ("Refreshing", "The content package is being read.", "", Trait.PASSING)
    PACKAGE_NOT_FOUND = (
        "PackageNotFound",
        "The object store has no such bucket or package.",
        "Upload it, or correct spec.source.objectStore; then `kubectl lablet refresh NAME`.",
    )
    PACKAGE_FORBIDDEN = (
        "PackageForbidden",
        "The object store refuses the provider's keys.",
        "Correct S3_ACCESS_KEY and S3_SECRET_KEY, or their rights; then `kubectl lablet refresh NAME`.",
    )
    PACKAGE_INVALID = (
        "PackageInvalid",
        "The content package is malformed; the content stored before stays.",
        "Correct what the message names, upload it, and `kubectl lablet refresh NAME`.",
    )
    PACKAGE_TOO_LARGE = (
        "PackageTooLarge",
        "The content package exceeds a limit, packed or unpacked; the content stored before stays.",
        "Make it smaller, or raise the setting that the message names; then `kubectl lablet refresh NAME`.",
    )
    CONTENT_STORE_UNAVAILABLE = (
        "ContentStoreUnavailable",
        "The object store does not answer; it is retried. Running lablets do not need it.",
        "See that it runs, and that VKPROVIDER_CONTENT_STORE, S3_ENDPOINT and the NetworkPolicy lead there.",
    )
    NO_CONTENT = ("NoContent", "No content was read yet.", "", Trait.PASSING)
    SOURCE_NOT_FOUND = (
        "SourceNotFound",
        "The ConfigMap or its key does not exist.",
        "Create it, or correct spec.source.",
    )
    SOURCE_FORBIDDEN = (
        "SourceForbidden",
        "The provider may not read that ConfigMap.",
        "Bind ClusterRole vkprovider-topology-reader in its namespace.",
    )
    TOPOLOGY_INVALID = (
        "TopologyInvalid",
        "The topology is not one that CML can import; the message names the place.",
        "Correct that place, and apply it with a new version.",
    )
    RESOURCES_UNKNOWN = (
        "ResourcesUnknown",
        "A node definition of the topology has unknown CPU and memory; there is no RuntimeClass meanwhile.",
        (
            "Set cpus and ram on the device, list it in VKPROVIDER_NODE_DEFINITIONS, set spec.resources, or set "
            "spec.stats: On in a CMLWorker whose CML has the definition."
        ),
    )
    CONTENT_TOO_LARGE = ("ContentTooLarge", "The content does not fit into one object.", "Make it smaller.")
    CONTENT_INVALID = (
        "ContentInvalid",
        "A stored content is damaged.",
        "Delete that ConfigMap and apply the LabletDefinition again; of a package: kubectl lablet refresh.",
    )
    RUNTIME_CLASS_CONFLICT = (
        "RuntimeClassConflict",
        "A RuntimeClass of that name exists and is not vkprovider's; it is not touched.",
        "Rename the LabletDefinition, or delete that RuntimeClass.",
    )
    API_REFUSED = ("ApiRefused", "The API server refused an object of this definition.", "Do what the message says.")
    SPEC_INVALID = ("SpecInvalid", "A field of spec is wrong.", "Correct the field that the message names.")
    IN_USE = (
        "InUse",
        "The definition is being deleted and waits for its lablets; new ones are refused.",
        (
            "Delete their Pods. Annotate vkprovider.io/abandon=true only if that cannot be: the definition goes at "
            "once, and labs that run go on, but are not imported again (`ContentMissing`); that cannot be undone."
        ),
    )
    DELETING = ("Deleting", "The definition is being deleted.", "", Trait.PASSING)
