"""Claims: which lablet has which lab, ports and session on a worker. They are the only authority.

* `claim`: one row; `document`: all rows, as the ConfigMap of a worker; `rows`: ports, in the schema that others read.
* `table`: the rows in memory, with what they hold; `ports`: allocate and release port numbers.
* `merge`: combine our rows with those that another writer left; `fitting`: which rows are written when not all fit.
"""
