"""The shell to content packages: object stores that have them, and the process that parses what they hold.

* `spi`: `ContentStore` and `Parser`, the seams that the controllers use.
* `objects`: `open_store` opens a store by URL: S3 and MinIO, a local folder, or memory. No request is sent before the
  first package is wanted, and nothing is ever written to a store.
* `parsing`: parses untrusted content in a process with limits; `parser`: that process.
"""
