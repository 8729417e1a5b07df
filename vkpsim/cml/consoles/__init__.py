"""Consoles of devices, and their ports.

* `devices`: how kinds of devices look; `commands`: what they understand; `shell`: what one does at a serial line;
  `console`: its history.
* `consoles`: serves lines to terminals; `patty`: opens the ports of tags; `inside`: what answers in a device.
"""
