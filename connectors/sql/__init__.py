"""Tables of databases as sinks: PostgreSQL (the extra `evenflow[postgres]`) and SQLite."""
