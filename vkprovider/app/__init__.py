"""The composition root: settings from the environment, the wiring of a replica, and its HTTP page.

* `main`: the process; `run`: one replica, its controllers and every loop by name; `loops`: run them beside each other.
* `queues`, `informers`: what is built before the controllers; `changes`: which change adds which key.
* `kubelet`: the kubelet API of our Nodes; `consoles`: the devices that it reaches; `ending`: hand them over.
* `settings`, `logs`: the settings from the environment, and the log format; `tunnels`: carriers by the settings;
  `broker`: the MQTT broker.
* `page`: what the replica serves; `measures`, `measure`, `readings`, `metrics`: its metrics.

Nothing below imports this package; it is the only place that knows all of the others.
"""
