"""LabletDefinition → content, RuntimeClass.

* `reconciler`: brings one definition up to date; `refresh`: reads its source again when that is due.
* `sources`, `packages`: read content from ConfigMaps and object stores; `ldscontent`: passes new content to the LDS.
* `versions`: content ConfigMaps, written and deleted; `runtimeclasses`: the RuntimeClass that charges for them.
* `impediments`: what else a definition needs, so that its lablets can work.
"""
