"""Consoles and ports of devices, as the kubelet API offers them: `devices.LabletDevices` implements `spi.Devices`.

* `finding`: which device a container is, and which port leads where.
* `shared`: one connection to a console for all who watch it, one of whom types; `open`: all that are open.
* `noting`: that somebody has typed.
* `attach`, `execute`, `configuration`, `logs`, `usage`: what `kubectl attach`, `exec`, `logs` and `top` do there.

Nothing runs while nobody looks. Whether this replica acts for the worker is checked when something is opened, and at
each key that is passed on; when the worker is given up, all sessions end with a message.
"""
