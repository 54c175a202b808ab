"""An API server of our own: Kubernetes' REST and watch semantics over a synchronous store.

`store.Store` holds the objects, `app.ApiServer` serves them as one ASGI app, `transport.InProcessTransport` reaches
that app without a socket and `serve.serve` over HTTP. Where it differs from kube-apiserver, `docs/apiserver.md` says
so; one conformance suite runs against both.
"""
