"""Reasons of a LabletDefinition."""

from vkprovider.platform.reasons import Reasons, Trait


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
        "See that it runs and that VKPROVIDER_CONTENT_STORE and S3_ENDPOINT name it.",
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
        "Delete that ConfigMap and apply the LabletDefinition again.",
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
        "Delete their Pods, or annotate vkprovider.io/abandon=true.",
    )
    DELETING = ("Deleting", "The definition is being deleted.", "", Trait.PASSING)
