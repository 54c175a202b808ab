"""One suite of API semantics, run on our API server and on the real one.

Every test takes the fixture `server` and runs twice. A test that fails on the real server is wrong; one that fails on
ours alone has found a bug, or a difference that `docs/apiserver.md` must name. What the suite leaves open: who may do
what (roles, admission policies), and texts in which Go's own decoder speaks.
"""
