"""LabletDefinition → content, RuntimeClass.

* `reconciler`: LabletDefinition → content ConfigMaps, RuntimeClass and status.
* `refresh`: the source of a LabletDefinition → a new version, when its spec or a request asks for it.
* `packages`: downloads of content packages, apart from the reconciler; new content → the Lab Delivery System.
* `versions`: the stored versions of all definitions: content ConfigMaps, written once, deleted when no lablet runs
  them.
* `runtimeclasses`: the RuntimeClass of each LabletDefinition; a RuntimeClass of another owner is never touched.
* `impediments`: what keeps lablets of a LabletDefinition from working although its content is good: said before a
  learner waits.
"""
