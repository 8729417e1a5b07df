"""Reasons that no object shows: findings of `vkprovider doctor`."""

from typing import Final

from vkprovider.platform.reasons import Reasons, Trait, by_word


class DoctorReason(Reasons):
    """Findings of `vkprovider doctor` that no object shows."""

    API_UNAVAILABLE = (
        "ApiUnavailable",
        "The API server does not answer.",
        "Check the context, the network and your login.",
    )
    UNSUPPORTED_KUBERNETES = (
        "UnsupportedKubernetes",
        "The API server is older than Kubernetes 1.30.",
        "Upgrade the cluster.",
    )
    VERSION_UNKNOWN = ("VersionUnknown", "The version that the API server reports cannot be parsed.")
    CRD_MISSING = (
        "CrdMissing",
        "A custom resource definition is not installed.",
        "kubectl apply -k manifests/overlays/default, or the overlay that you install with.",
    )
    CRD_DIFFERS = (
        "CrdDiffers",
        "A custom resource definition is of another version of vkprovider.",
        "Apply the one of this version, or use the other version's doctor.",
    )
    CRD_NOT_ESTABLISHED = (
        "CrdNotEstablished",
        "The API server does not serve a custom resource (yet).",
        "Do what the message says.",
    )
    SETTING_UNKNOWN = (
        "SettingUnknown",
        "A setting has a name that no program reads, so it has no effect.",
        "Correct the name; docs/reference/settings.md has all of them.",
    )
    INSTALLED_ELSEWHERE = (
        "InstalledElsewhere",
        "The cluster's installation is in another namespace than the one that is examined.",
        "vkprovider doctor --namespace with the one that the message names; to move it: docs/install.md.",
    )
    NAMESPACE_MISSING = (
        "NamespaceMissing",
        "The provider's namespace does not exist.",
        "kubectl apply -k manifests/overlays/default, or the overlay that you install with.",
    )
    SERVICE_ACCOUNT_MISSING = (
        "ServiceAccountMissing",
        "The provider's ServiceAccount does not exist.",
        "kubectl apply -k manifests/overlays/default, or the overlay that you install with.",
    )
    RIGHTS_MISSING = (
        "RightsMissing",
        "The provider's ServiceAccount lacks rights.",
        "kubectl apply -k manifests/overlays/default, or the overlay that you install with.",
    )
    RIGHTS_UNKNOWN = ("RightsUnknown", "You may not query the ServiceAccount's rights.", "Ask as a cluster admin.")
    NOT_READABLE = ("NotReadable", "You may not read this.", "Ask as a cluster admin.")
    SECRET_FORBIDDEN = ("SecretForbidden", "You may not read the worker's Secret.", "Ask as a cluster admin.")
    NO_REPLICA = (
        "NoReplica",
        "No replica of the provider runs: no object is acted upon.",
        "Start it; look at its log.",
    )
    REPLICA_SILENT = (
        "ReplicaSilent",
        "A replica ended without releasing its Nodes; another one takes them over, once there is one.",
    )
    VERSIONS_DIFFER = (
        "VersionsDiffer",
        "Replicas of different versions share the Nodes, as during an upgrade.",
        "If no upgrade is on its way: `kubectl rollout status` of the Deployment. See docs/upgrade.md.",
    )
    NO_OWNER = ("NoOwner", "No living replica owns a worker.", "Wait LEADER_LEASE_TTL; look at the provider's log.")
    LEASE_EXPIRED = (
        "LeaseExpired",
        "The Lease of a Node is not renewed in time: the Node turns NotReady.",
        "See that its replica reaches the API server; look at its log.",
    )
    SERVING_CERTIFICATE_PENDING = (
        "ServingCertificatePending",
        "Nobody has approved the serving certificates of replicas: theirs are self-signed (docs/consoles.md).",
        "Approve the requests that the message names, after a look at them.",
    )
    KUBELET_NOT_SERVED = (
        "KubeletNotServed",
        "Nodes declare no kubelet API: `kubectl logs`, `attach`, `exec`, `port-forward` and `top` fail there.",
        "Unless it is turned off on purpose: see VKPROVIDER_KUBELET_PORTS and the provider's log.",
    )
    MUX_MISSING = (
        "MuxMissing",
        "A definition lends ports of its lablets to a mux that does not exist.",
        "Make the Service, or correct spec.expose.mux of the LabletDefinition.",
    )
    MUX_NODE_PORTS = (
        "MuxNodePorts",
        "A mux or its channels take a node port for each port, so that a class may use up those of the cluster.",
        "Set `spec.allocateLoadBalancerNodePorts: false` of each, unless its load balancer needs them (docs/mux.md).",
    )
    MUX_SERVICE_LB = (
        "MuxServiceLB",
        "ServiceLB, the load balancer of k3s and RKE2, makes a container for each port of a mux, on every node.",
        "Make the mux again with another `spec.loadBalancerClass`, or turn ServiceLB off: docs/mux.md.",
    )
    MUX_NOT_SERVED = (
        "MuxNotServed",
        "A Service is marked as a mux, or definitions lend it ports, and no program serves muxes in the cluster.",
        "kubectl apply -k manifests/components/mux, or mux.enabled of the chart (docs/mux.md).",
    )
    MUX_STORE_UNBOUND = (
        "MuxStoreUnbound",
        "The program that serves muxes has no right to keep the ports of a mux in its namespace.",
        "Run the command that the message names.",
    )
    PROGRAM_UNAVAILABLE = (
        "ProgramUnavailable",
        "The portal, the program that serves muxes or a relay has fewer Pods that are ready than it asks for.",
        "Run the command that the message names: it mends that, or shows why.",
    )
    COOKIE_KEY_MISSING = (
        "CookieKeyMissing",
        "The portal has no key for cookies, so that nobody can log in with a browser.",
        "Run the command that the message names (docs/portal.md, Log in).",
    )
    CERTIFICATE_SELF_MADE = (
        "CertificateSelfMade",
        "Each replica of the portal serves a certificate that it has made itself, which nobody trusts.",
        "Run the command that the message names, with a certificate of the portal's names (docs/install.md).",
    )
    CERTIFICATE_UNUSABLE = (
        "CertificateUnusable",
        "The portal's certificate has expired or will soon, lacks a name, or does not belong to its key.",
        "Replace it, as the message says.",
    )
    NO_ADDRESS = (
        "NoAddress",
        "Nothing that the doctor knows leads from outside of the cluster to the portal.",
        "Make an Ingress or a route (docs/install.md, One address), unless something else leads there.",
    )
    ADDRESS_PENDING = (
        "AddressPending",
        "The Ingress or the load balancer before the portal has no address yet.",
        "See that a controller serves its class.",
    )
    PROXY_CLOSED = (
        "ProxyClosed",
        "A proxy in front of the portal lets no WebSocket through, so that no console opens in a browser.",
        "Have the proxy pass on the headers Upgrade and Connection (docs/portal.md, Log in).",
    )
    ADDRESS_SILENT = (
        "AddressSilent",
        "An address of VKPROVIDER_PORTAL_URLS cannot be reached, or shows a certificate that is not trusted here.",
        "Correct the setting, or see what leads to that address.",
    )
    NOBODY_BOUND = (
        "NobodyBound",
        "No binding lets anybody have a lab of the portal.",
        "Run the command that the message names, with the group of your learners.",
    )
    PREFIX_DIFFERS = (
        "PrefixDiffers",
        "VKPROVIDER_PORTAL_USERNAME_PREFIX is not what the names of learners begin with.",
        "Correct the setting, or the names in the binding.",
    )
    MENU_EMPTY = (
        "MenuEmpty",
        "The portal offers no lab; the message says why each definition is not on its menu.",
        "Run the command that the message names.",
    )
    QUOTA_TOO_SMALL = (
        "QuotaTooSmall",
        "A quota of the portal fits no lab of its menu.",
        "Raise it in the file of VKPROVIDER_PORTAL_CONFIG, or offer a smaller lab; then restart the portal.",
    )
    WORKBENCH_NOT_ALLOWED = (
        "WorkbenchNotAllowed",
        "The policy that confines the portal does not list an image or a driver of a workbench.",
        "List it in the policy vkprovider-confine-portal (docs/workbench.md).",
    )
    WORKBENCH_WITHOUT_HOST = (
        "WorkbenchWithoutHost",
        "Workbenches have no hosts, so that no page leads to one.",
        "Set VKPROVIDER_PORTAL_WORKBENCH_HOSTS, if people are to open them in a browser.",
    )
    PIDS_UNLIMITED = (
        "PidsUnlimited",
        "A node that workbenches run on does not limit the processes of a Pod.",
        "Set podPidsLimit in the configuration of its kubelet.",
    )
    HUB_UNBOUND = (
        "HubUnbound",
        "No binding lets the hub see and end labs.",
        "Run the command that the message names.",
    )
    HUB_CLOSED = (
        "HubClosed",
        "No NetworkPolicy lets the portal connect to the port of its hub.",
        "Apply the NetworkPolicy of docs/hub.md.",
    )
    HUB_AWAY = (
        "HubAway",
        "The Service of the portal's hub does not exist, or no Pod behind it is ready.",
        "Start the hub, or correct VKPROVIDER_PORTAL_HUB_API_URL.",
    )
    PAGE_UNSET = (
        "PageUnset",
        "The portal knows no address of the provider's page: it shows nothing of lablets that are gone.",
        "Set VKPROVIDER_PORTAL_PROVIDER_URL as manifests/overlays/complete does (docs/install.md).",
    )
    PAGE_AWAY = (
        "PageAway",
        "The Service of the provider's page, as the portal knows it, does not exist, or no Pod behind it is ready.",
        "Start the provider, or correct VKPROVIDER_PORTAL_PROVIDER_URL.",
    )
    PAGE_CLOSED = (
        "PageClosed",
        "No NetworkPolicy lets the portal connect to the port of the provider's page.",
        "Apply manifests/components/portal, or add the port to the egress of its NetworkPolicy.",
    )
    PAGE_UNTRUSTED = (
        "PageUntrusted",
        "The portal cannot verify the certificate of the provider's page, and sends no token there.",
        "Run the command that the message names.",
    )
    PAGE_REFUSES = (
        "PageRefuses",
        "The provider's page takes no token that the API server takes, and so none of those who ask the portal.",
        "Add the API server's audience to VKPROVIDER_HTTP_AUDIENCES (docs/install.md), and restart the provider.",
    )
    RELAY_PORTS_TAKEN = (
        "RelayPortsTaken",
        "The ports of a relay overlap with node ports, or with those of the kubelet API of virtual Nodes.",
        "Choose others: VKPROVIDER_RELAY_PORTS, and the annotation `port-range` of the mux (docs/relay.md).",
    )
    CLOCK_SKEW = (
        "ClockSkew",
        "The clock of the API server, a replica or a worker differs from that of this machine.",
        "Run a time service on both.",
    )
    CLOCK_UNKNOWN = ("ClockUnknown", "You may not read the API server's time.", "Ask as a cluster admin.")
    NO_WORKER = ("NoWorker", "There is no CMLWorker.", "Create one.")
    NOT_OBSERVED = (
        "NotObserved",
        "The provider has not observed the object (or its last change).",
        "See that it runs.",
    )
    NOT_REPORTED = (
        "NotReported",
        "A Pod has a Node, and the provider reports nothing on it.",
        "Look at the provider's log. If it runs by hand: it must do so as its own ServiceAccount (docs/install.md).",
    )
    WAITS_FOR_WORKER = (
        "WaitsForWorker",
        "A Pod is being deleted for longer than its grace period: its worker must answer before the lab is removed.",
        (
            "See that the worker runs; the Pod then ends by itself. If the worker never comes back: "
            "docs/connect-cml.md#a-worker-that-never-comes-back."
        ),
    )
    NOT_READY = ("NotReady", "The object is not Ready and does not say why.", "Look at the provider's log.")
    NODE_MISSING = ("NodeMissing", "A CMLWorker is Ready but has no Node.", "Look at the provider's log.")
    RUNTIME_CLASS_MISSING = (
        "RuntimeClassMissing",
        "A LabletDefinition is Ready but has no RuntimeClass.",
        "Look at the provider's log.",
    )
    SAME_URL = ("SameUrl", "Two CMLWorkers name the same CML controller.", "Keep one CMLWorker per controller.")
    FOREIGN_LABS = ("ForeignLabs", "There are foreign labs on the worker; they are never touched.")
    CORDONED = ("Cordoned", "The Node is cordoned.", "kubectl uncordon")
    NOT_ADMINISTRATOR = (
        "NotAdministrator",
        "The worker's user is not an administrator of CML: foreign labs are neither seen nor counted.",
        "Make the user an administrator, unless only vkprovider uses the worker.",
    )
    LICENCE_INVALID = ("LicenceInvalid", "CML is not licensed and starts no devices.", "Register it: Tools, Licensing.")
    LICENCES_FEW = (
        "LicencesFew",
        "`capacity.labNodes` promises more devices than the worker's licence lets run.",
        "Set it to what the message says, or license more.",
    )
    PORTS_NOT_OPENED = (
        "PortsNotOpened",
        "The worker's port range differs from the default of PATty, CML's port forwarder.",
        "Set `portRange` to the ports that PATty opens on the worker.",
        Trait.LASTING,
    )
    UNREACHABLE_FROM_HERE = ("UnreachableFromHere", "The provider reaches the worker, the doctor's machine does not.")
    TUNNEL_NOT_EXAMINED = (
        "TunnelNotExamined",
        "The doctor cannot use this tunnel from where it runs; it reports what the provider says of its workers.",
        "For `mqtt`: `kubectl -n vkprovider-system exec deploy/vkprovider -- vkprovider doctor`.",
    )
    BROKER_UNREACHABLE = (
        "BrokerUnreachable",
        "The MQTT broker does not answer, or ends the connection.",
        "See that it runs, and that VKPROVIDER_TUNNEL_MQTT_URL and the NetworkPolicy lead there.",
    )
    BROKER_NOT_TRUSTED = (
        "BrokerNotTrusted",
        "The MQTT broker's certificate cannot be trusted, or it does not speak TLS.",
        "Correct VKPROVIDER_TUNNEL_MQTT_CA_FILE, the URL's scheme, or the broker's certificate.",
    )
    BROKER_LOGIN_REFUSED = (
        "BrokerLoginRefused",
        "The MQTT broker does not accept the provider's user name, password or certificate.",
        "Correct VKPROVIDER_TUNNEL_MQTT_USERNAME and VKPROVIDER_TUNNEL_MQTT_PASSWORD, or the broker's users.",
    )
    BROKER_TOPIC_REFUSED = (
        "BrokerTopicRefused",
        "The MQTT broker's access rules do not allow a topic that replicas need.",
        "Give the provider's user the rights of manifests/mosquitto/aclfile.",
    )
    NO_AGENT_HEARD = (
        "NoAgentHeard",
        "The MQTT broker can be used, but none of the agents was heard.",
        "See that they run, and that the provider's user may read their topics (manifests/mosquitto/aclfile).",
    )
    ROUND_TRIP = ("RoundTrip", "How long workers take to answer through their agents, to CML and back.")
    INSTRUCTOR_RIGHTS_MISSING = (
        "InstructorRightsMissing",
        "You lack rights of an instructor in the namespace, or of one in the cluster.",
        "Ask an admin to run the command that the message names.",
    )
    USE_MISSING = (
        "UseMissing",
        "The namespace's ServiceAccount may not run a definition.",
        "Ask an admin to run the command that the message names.",
    )
    QUOTA_FULL = (
        "QuotaFull",
        "A quota of the namespace is used up, so that no further lablet is made.",
        "End lablets that nobody needs, or ask an admin to raise the quota.",
    )
    SCHEDULE_ROOM = (
        "ScheduleRoom",
        "A schedule of a pool asks for more lablets than the workers will have room for, if what runs now runs on.",
        "Add a worker, end what nobody needs, or change the schedule: kubectl lablet schedule deployment/POOL.",
    )
    NO_WORKER_READY = (
        "NoWorkerReady",
        "No worker of a definition's environment is Ready, so that none of its lablets can run.",
        "Ask an admin to look at the workers.",
    )
    TOO_LARGE = (
        "TooLarge",
        "No worker is large enough for a lablet, whatever else runs.",
        "Lower the Pod's requests or the definition's spec.resources, or raise spec.capacity of a CMLWorker.",
    )
    FAILED_CREATE = (
        "FailedCreate",
        "A Deployment, StatefulSet or Job may not make a Pod of a lablet; the message is the API server's.",
        "See the first table of this page, *Kubernetes: no Pod is made*.",
    )
    DAEMON_SET_EMPTY = (
        "DaemonSetEmpty",
        "A DaemonSet of lablets selects no Node: its controller looks before the RuntimeClass is applied.",
        "Repeat nodeSelector and tolerations of the RuntimeClass in its template: manifests/examples/daemonset.yaml.",
    )
    WAIT_TOO_SHORT = (
        "WaitTooShort",
        "A Deployment or the portal gives a lablet up before its devices have had the time to boot that they have.",
        "Do what the message says; `status.bootTimeoutSeconds` of a LabletDefinition is how long a device may take.",
    )
    STUCK = (
        "Stuck",
        "A Pod has been on its way for a quarter of an hour, beside the time that its devices have to boot.",
        "Look at the CMLWorker and the provider's log.",
    )
    FAILED = ("Failed", "A Pod ended with phase Failed; see the message.", "Delete it when it is not needed.")


DOCTOR: Final = by_word(DoctorReason)
"""The reasons by their words."""
