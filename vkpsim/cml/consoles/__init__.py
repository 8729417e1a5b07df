"""Consoles of devices, and their ports.

* `devices`: how kinds of devices look; `commands`: what they understand; `shell`: what one does at a serial line;
  `console`: its history.
* `screen`: what one sees and clicks on; `consoles`: serves lines and screens to people; `patty`: opens the ports of
  tags; `inside`: what answers in a device.
"""
