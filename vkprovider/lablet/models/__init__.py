"""The custom resources, field by field: what an admin writes, and what the provider answers.

* `worker`: `CMLWorker`: a Cisco Modeling Labs controller that becomes a Node.
* `definition`: `LabletDefinition`: what a lablet is, a topology and the terms on which it runs.
* `parameters`: the fields that a definition declares for the variables of its lablets, and what a value has to be.
* `fields`: the types and patterns of fields of custom resources, and a spec as its model, or every field that is wrong.
* `status`: the statuses of the custom resources: what the provider writes and commands read.
* `crd`: custom resource definitions, generated from the models.

The models are the source: the CRDs in `manifests/crds` are generated from them (`vkprovider crds`), so that a field's
description, limits and default stand once.
"""
