"""Recordings of jobs: the views of a job in a file.

`codec.py` packs values by their types, `packing.py` the changes from one view to the next, and `file.py` is the file. `moment.py` finds a
moment of a recording, and `whatif.py` replays policies on it.
"""
