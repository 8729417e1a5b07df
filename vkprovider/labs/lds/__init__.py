"""The LDS shell: what the controllers ask of the Lab Delivery System.

The wire protocol is `openapi.yaml`, which marks what of it is assumed.

* `spi`: the seam between the controllers and one deployment of the Lab Delivery System.
* `wire`: the answers of a Lab Delivery System as frozen structs: sessions, content, responses, feedback, extensions.
* `client`: the calls of the LDS over HTTP, for one deployment that is opened by its URL.
* `deployments`: all deployments of the LDS: a client for each, the choice among them, and a configuration that may
  change.
* `config`: which deployments there are: those of the file that LDS_DEPLOYMENTS_CONFIG names, else the one of
  LDS_API_URL.
* `dialect`: what may be asked of an LDS or a grader, and what the answers mean.
* `grader`: the grader: one URL that judges what was collected from a lablet (row A24 of `openapi.yaml`).
"""
