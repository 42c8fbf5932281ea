"""Changes of a database table as rows: each has a row of the table as it is after the change, or the key of a row that is deleted.

Of the changes of a key the newest one counts. Its place in the log tells which one that is, so neither repeats nor the order of
arrival matter. The changes of a key must be in one partition of the log: places in two of them can't be compared.
"""

from __future__ import annotations

DELETED = "__deleted"
"""The column that is true if the row is deleted; the columns that aren't of the key are then null."""

PARTITION = "__partition"
"""The column with the partition of the log, an integer."""

OFFSET = "__offset"
"""The column with the place in the partition, an integer that rises."""

RESERVED = "__"
"""The prefix of names that columns of a table can't have."""
