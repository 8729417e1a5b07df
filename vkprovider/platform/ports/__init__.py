"""Port numbers: who holds which, and the ConfigMap in which they are stored, for every kind of owner.

* `allocator`: allocate and release numbers, of owners that it knows nothing about.
* `rows`: the rows of a stored document, a port each; `store`: the document around them, in its ConfigMap.
"""
