"""How agents and replicas find each other: what both programs know of the tunnels between them.

* `hello`: what an agent says about itself and its worker; `settings`: of tunnels; `broker`: the MQTT broker.
"""
