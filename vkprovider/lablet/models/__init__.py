"""The custom resources, field by field: what an admin writes, and what the provider answers.

* `worker`: `CMLWorker`; `definition`: `LabletDefinition`; `fields`: the types of their fields.
* `status`: their statuses, which the provider writes.
* `parsing`: a spec as a model, or every field that is wrong; `crd`: the CRDs, generated.

The models are the source: the CRDs in `manifests/crds` are generated from them (`vkprovider crds`), so that a field's
description, limits and default stand once.
"""
