"""The Helm chart in `manifests/helm`, and the Helm that packages and tests it.

* `chart`: the templates and pages of the chart, from what the kustomization renders.
* `values`: its values: one table, from which values.yaml, the schema and the page are made.
* `program`: Helm itself, built once from the Go module that go.mod and go.sum pin.
"""
