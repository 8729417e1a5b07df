"""LabletDefinition → content, RuntimeClass.

* `reconciler`: one definition at a time; `refresh`: read its source again.
* `sources`, `packages`: where content comes from: ConfigMaps, object stores; `ldscontent`: forms passed to the LDS.
* `versions`: content ConfigMaps, written and pruned; `runtimeclasses`: the RuntimeClass that charges for it.
"""
