"""The carrier over an MQTT broker, version 5 or 3.1.1, for callers and for agents.

Nothing is retained and every session is clean: what a broker loses, the protocol repeats, so its persistence does not
matter. `manifests/mosquitto` holds access rules that let an agent see its own topics only.

* `carrier`: keeps a connection to the broker up, and maps addresses to topics.
* `broker`: how a broker is reached, directly or by an HTTP proxy, and why it is not.
* `connection`: one connection to a broker, from CONNECT to its end: paho-mqtt, driven by the event loop.
"""
