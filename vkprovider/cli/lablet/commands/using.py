"""Commands that use a lab: console, logs, forward, screen, capture, login, portal."""

from typing import Final

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import learner_option, learners_option, place_options, selector_option
from vkprovider.cli.shared.page.options import page_options
from vkprovider.cli.shared.times import duration

_PORT_MAX: Final = 65535


@click.command(epilog="Example: kubectl lablet console -u alice r1")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets_or_devices)
@click.argument("device", metavar="DEVICE", required=False, shell_complete=candidates.devices)
@learners_option("The lablet of this learner, instead of POD; with --watch it may be repeated.")
@selector_option("With --watch: all lablets that this label selector selects.")
@click.option("--watch", is_flag=True, help="Only see what comes: nothing is typed. Ctrl-C ends it.")
@click.option("--take-over", is_flag=True, help="Type, although another session does; it watches until you leave.")
@place_options
@runs("console", of="vkprovider.cli.lablet.console")
def console() -> None:
    """Connect this terminal with the console of DEVICE of POD; Ctrl-] leaves it.

    Up to 32 sessions watch a console, and one of them types. A second one that wants to type is refused,
    unless it says --take-over. It is `kubectl exec -it POD -c DEVICE -- console`, and takes the same right, to `create`
    `pods/exec`.

    --watch with several -u, or with -l, shows the consoles of several learners in one terminal, each line with the
    learner before it. What stands still for a second, such as a prompt, is shown as well. A console that ends says why,
    and the others go on. DEVICE is the last word, and may be left out if each Pod has a container for just one. Free
    lablets of pools are left alone.
    """


@click.command(epilog="Example: kubectl lablet logs -u alice")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets_or_devices)
@click.argument("device", metavar="[DEVICE]", required=False, shell_complete=candidates.devices)
@learner_option
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--tail", type=click.IntRange(min=0), metavar="LINES", help="Only the last lines (default: all).")
@place_options
@runs("logs", of="vkprovider.cli.lablet.console")
def logs() -> None:
    """Print the story of POD, with what happened to the lab and when, or the console log of its DEVICE.

    It is `kubectl logs POD -c CONTAINER`: a device has a log if the Pod has a container for it.
    """


@click.command(epilog="Example: kubectl lablet forward mylab-0 r1_serial 5000")
@click.argument("pod", shell_complete=candidates.lablets)
@click.argument("name", shell_complete=candidates.ports)
@click.argument("local", type=click.IntRange(0, _PORT_MAX), required=False)
@click.option("--address", help="Addresses to listen on, as of `kubectl port-forward` (default: localhost).")
@place_options
@runs("forward", of="vkprovider.cli.lablet.console")
def forward() -> None:
    """Forward the port LOCAL of this machine to the port NAME of POD, until Ctrl-C.

    Names are those of `kubectl lablet ports POD -o wide`. Without LOCAL it is the port's own number; 0 chooses a free
    one. It takes the right to `create` `pods/portforward`.
    """


@click.command(epilog="Example: kubectl lablet screen -u alice pc1")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets_or_devices)
@click.argument("device", metavar="DEVICE", required=False, shell_complete=candidates.devices)
@learner_option
@click.option(
    "--local",
    type=click.IntRange(0, _PORT_MAX),
    metavar="PORT",
    help="Port of this machine for the viewer; 0 chooses one (default: the first free one from 5901 on).",
)
@place_options
@runs("screen", of="vkprovider.cli.lablet.console")
def screen() -> None:
    """Lead VNC viewers on this machine to the screen of DEVICE of POD, until Ctrl-C.

    It prints the command that starts a viewer, and listens on the loopback address alone. Each viewer is led
    on by `kubectl exec -i POD -c lab -- screen DEVICE`, which takes the right of a console, `create` of `pods/exec`.
    The device needs a tag `vnc:PORT` in the topology.
    """


@click.command(epilog="Example: kubectl lablet capture -u alice r1:eth0 | wireshark -k -i -")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets_or_links)
@click.argument("link", metavar="[LINK]", required=False, shell_complete=candidates.links)
@learner_option
@click.option("--filter", "expression", metavar="EXPRESSION", default="", help="As of tcpdump: `icmp or arp`.")
@click.option(
    "--packets",
    metavar="N",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="The most; 10000 are possible.",
)
@click.option(
    "--time", "seconds", metavar="DURATION", default="60s", show_default=True, callback=duration, help="1h at most."
)
@click.option("--stop", is_flag=True, help="End the capture of the lab instead.")
@place_options
@runs("capture", of="vkprovider.cli.lablet.capture")
def capture() -> None:
    """Write the packets of LINK of POD to a pipe or a file, as a pcap file that grows; without LINK show the links.

    LINK is an end, `r1:GigabitEthernet0/0` or `r1:gi0/0`, or two devices with one link, `r1-r2`. The capture ends
    at its limits, when its reader ends, with --stop and with the lab; a lab has one at a time. It is `kubectl exec POD
    -c lab -- capture LINK`, and takes the right of a console, to `create` `pods/exec`.
    """


@click.command(epilog="Example: kubectl lablet login -u alice")
@click.argument("what", metavar="[POD|UID]", required=False, shell_complete=candidates.lablets)
@learner_option
@page_options
@place_options
@runs("login", of="vkprovider.cli.lablet.addresses")
def login() -> None:
    """Print the URL where the learner of POD logs in. It authenticates as the learner.

    It needs the right to `get` `lablets/login`, as in the ClusterRoles vkprovider-instructor and vkprovider-login;
    reading Pods is not enough.
    The address of the provider's page is what an admin has named to the namespace by `kubectl lablet grant`; without
    it, an admin uses `kubectl -n vkprovider-system port-forward svc/vkprovider 8082` and --url https://127.0.0.1:8082.
    At a loopback --url no certificate is verified without --cacert: the API server leads a port-forward to the Pod.
    """


@click.command(epilog="Example: kubectl lablet portal --url https://labs.example.com --open")
@click.option(
    "--url",
    envvar="VKPROVIDER_PORTAL_URL",
    metavar="URL",
    help="URL of the portal, as a browser opens it (default: VKPROVIDER_PORTAL_URL).",
)
@click.option(
    "--cacert",
    envvar="VKPROVIDER_PORTAL_CACERT",
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file of the CA of the portal's certificate (default: VKPROVIDER_PORTAL_CACERT, else the system's CAs).",
)
@click.option("--open", "opens", is_flag=True, help="Open the address in a browser of this machine, too.")
@place_options
@runs("portal", of="vkprovider.cli.lablet.addresses")
def portal() -> None:
    """Print an address that logs a browser in at the portal as you: once, and within a minute.

    The token of the kubeconfig is sent to the portal, and the browser has the session of this token until it expires,
    for 12 hours at most. A kubeconfig that has only a client certificate has no token to send.
    Without an address for browsers, an admin uses
    `kubectl -n vkprovider-system port-forward svc/vkprovider-portal 8083` and --url https://localhost:8083. At a
    loopback --url no certificate is verified without --cacert: the API server leads a port-forward to the Pod.
    """
