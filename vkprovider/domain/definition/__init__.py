"""LabletDefinitions.

* `content`: content versions, named by digest, as ConfigMaps; `status`: the definition's status.
* `package`, `devicefile`: the files that an exam's package holds; `refresh`: when sources are read again.
"""
