"""LabletDefinitions.

* `content`: content versions, named by digest, as ConfigMaps; `status`: the definition's status.
* `fitting`: whether a worker is large and new enough for one lablet.
* `package`, `devicefile`: the files that an exam's package holds; `refresh`: when sources are read again.
"""
