"""The view model of a job: what pages, terminals, notebooks and recordings show, computed from the views of its coordinator.

Invariant: nothing here knows how it is shown or transported. There is no handle of a job, no web server and no terminal library.

`polling.py` asks a running job for views. `history.py` keeps ten minutes of them, by second (`stage_history.py`, `time_bucket.py`) and as
decisions (`timeline.py`). `policy_snapshots.py` rebuilds what policies see.
"""
