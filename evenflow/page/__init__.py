"""The live web page of jobs: `evenflow ui [JOB]`.

A follower process polls each job once a second (`follower.py`). The server's process keeps their histories (`hub.py`) and sends them to
browsers (`server.py`). It doesn't use Ray, so that it survives the loss of a cluster.
"""
