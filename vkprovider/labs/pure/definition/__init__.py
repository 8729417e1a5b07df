"""LabletDefinitions.

* `content`: versions of a definition's content: stored as immutable ConfigMaps, named by digest.
* `status`: the status of a LabletDefinition.
* `fitting`: whether a worker is large enough, and new enough, for one lablet of a definition.
* `package`: a content package: the zip that authors upload, with `devices.yaml`.
* `refresh`: refreshing: when a source is read again, who requested it, and the result.
"""
