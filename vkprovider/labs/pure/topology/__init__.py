"""What a lab consists of, read from a cml.yaml.

* `topology`: parse and render a cml.yaml; `yamltext`: YAML in and out; `rewrite`: change nothing but what must change.
* `tags`, `template`: port tags of devices, and the port template of a topology; `links`: what they join exists;
  `schema`: what CML's own schema refuses.
* `parameters`: `$(NAME)` in day-0 configurations, which the Pod's environment fills in.
* `mappings`, `visibility`: the ports of a lablet as a learner sees them, and which devices a learner sees.
* `devices`: the devices of a definition's status; `resources`: the CPU and memory that they need;
  `nodedefinitions`: what is known of node definitions.
"""
