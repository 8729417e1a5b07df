"""The shell to object stores: it gets a content package by name, whatever is in it.

`spi.ContentStore` is the seam that the controllers use, `objects.open_store` opens it by URL: S3 and MinIO, a local
folder, or memory. No request is sent before the first package is wanted, and nothing is ever written to a store.
"""
