"""What a lab consists of, read from a cml.yaml.

* `topology`: a topology (`cml.yaml`) as data: devices with what they need, and the text that is imported for one
  lablet.
* `yamltext`: YAML from outside: read within limits, written quickly.
* `rewrite`: the text of a topology with a gap for each outside port, and its parameters.
* `configured`: a topology whose devices begin with configurations that were saved.
* `schema`: what CML's own schema refuses of a topology, with both ends of each link.
* `devices`: the device list of a learner's session: each visible device with its primary access, or with every one.
* `resources`: the resources that a topology needs of a worker, and the node definitions that say so.
"""
