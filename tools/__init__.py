"""Programs for whoever works on the project, run from a checkout as `python -m tools.NAME`.

* `generate`: CRDs and reference pages from the code, with `crdpage`, `monitoring` and `markdown`.
* `render`: `manifests/install.yaml` from the kustomization.
"""
