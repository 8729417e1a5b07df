"""The LDS shell: what the controllers ask of the Lab Delivery System.

`spi.LabDelivery` is the seam the controllers use, for one deployment; `client.LdsClient` speaks to it over HTTP, and
`deployments.Deployments` holds one client for each deployment of the configuration and chooses among them. The wire
protocol is `openapi.yaml`, which also says what of it is assumed.
"""
