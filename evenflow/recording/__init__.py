"""Recordings of jobs: what the page is told of a job, look by look, in a file.

`typed.py` packs values by their types, `views.py` what has changed from one view to the next, `file.py` is the file. `seen.py` rebuilds
what policies saw at a time, and `whatif.py` what they would have done.
"""
