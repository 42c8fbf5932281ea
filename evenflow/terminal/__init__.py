"""Shows jobs, reports and errors on terminals and in notebooks, with rich.

`console.py` makes consoles and tables; the other modules draw one kind of thing each.
"""
