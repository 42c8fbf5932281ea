"""Tables of databases as sinks: PostgreSQL (the extra `evenflow[sql]`) and SQLite."""
