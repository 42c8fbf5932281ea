"""The live web page of jobs: `evenflow ui [JOB]`.

A follower process asks each job once a second (`follower.py`). The server's process keeps what it hears (`history.py`) and sends it to
browsers (`server.py`). It doesn't use Ray, so that it outlives a cluster that goes away.
"""
