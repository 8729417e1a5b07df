"""The LDS shell: what the controllers ask of the Lab Delivery System.

`spi.LabDelivery` is the seam that the controllers use, for one deployment, `wire` what it answers; `client.LdsClient`
is its form over HTTP, which `factory.open_deployment` opens. `deployments.Deployments` holds one client for each
deployment of the configuration (`config`) and chooses among them. `operations` names every request that may leave,
`dialect` says what the answers mean, `errors` what the common tree lacks. `grader` asks for verdicts. The wire protocol
is `openapi.yaml`, which marks what of it is assumed.
"""
