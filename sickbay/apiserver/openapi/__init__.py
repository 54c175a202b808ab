"""OpenAPI v3: schemas of the built-in kinds, recorded from kube-apiserver, and the documents clients ask for."""
