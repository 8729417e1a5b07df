"""Consoles and ports of devices, as the kubelet API offers them: `devices.LabletDevices` implements `spi.Devices`.

* `devices`: what the kubelet API needs of the lablets.
* `finding`: which device a container is, and which port of CML's host leads to a port of a Pod.
* `shared`: one connection to a console, shared by all who watch it; one of them types, as `labs.pure.console.writers`
  decides.
* `open`: everything that is open on the workers of this replica, and notes that somebody has typed.
* `commands`: `kubectl attach`, `kubectl exec`, `exec -- config` and `-- screen`: a person, or one command, at a device.
* `requests`: `exec -c lab -- hand-in`, `-- reset` and `-- device`: what a learner asks of the lablet and its devices.
* `captures`: `exec -c lab -- capture r1:eth0`: packets of a link.
* `logs`: `kubectl logs`: what a console has printed, and what it goes on printing.
* `usage`: `kubectl top`: what devices use, as CML reports it: CPU in percent of a core; memory is what a device was
  given.

Nothing runs while nobody looks. Whether this replica acts for the worker is checked when something is opened, and at
each key that is passed on; when the worker is given up, all sessions end with a message.
"""
