"""Scripts of SQL: CREATE TABLE, VIEW and FUNCTION, SET, and INSERT INTO, as one flow.

>>> text = '''
... CREATE TABLE bids (auction BIGINT, price BIGINT) WITH ('connector' = 'nexmark', 'stream' = 'bid', 'events' = '500');
... CREATE TABLE dear (auction BIGINT, price BIGINT) WITH ('connector' = 'print');
... INSERT INTO dear SELECT auction, price FROM bids WHERE price > 50000000;
... '''
>>> [node.name for node in flow_of(text, "dear").graph.nodes.values()]
['bids', 'select', 'filter', 'dear']
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..connectors.formats.file_source import FileSource
from ..dataflow import Dataflow
from ..engine.errors import FlowError
from ..engine.expressions.expression import col
from ..engine.plan.graph import Input
from ..stream import Stream
from .columns import selected
from .connectors import TableDefinition, settled_by_checkpoints, sink_of, source_of
from .dialect import text_of, tokens_of, trees_of
from .event_time import event_time_column
from .names import inlined, resolved
from .query import Query
from .refusals import check_parts, refusal
from .statement import NamedStream, NamedTable
from .translation import FOR_EVER
from .types import arrow_type
from .user_functions import UserFunction, checked_functions
from .values import to_expression
from .watermarks import Watermark, without_watermarks

TTL = "table.exec.state.ttl"
"""The setting of the time to live of unbounded state: '1 d', or '0' for ever."""


def flow_of(text: str, name: str, functions: Mapping[str, Any] | None = None) -> Dataflow:
    """Return the flow of a script, named `name`. Raises FlowError for what isn't supported, naming the part of the script."""
    return script_of(text, name, functions).flow


def script_of(text: str, name: str, functions: Mapping[str, Any] | None = None) -> Script:
    """Return a script with its flow and its notes. Raises FlowError as `flow_of` does."""
    script = Script(name, functions)
    tokens, marks = without_watermarks(tokens_of(text))
    script.watermarks = marks
    for tree in trees_of(tokens, text):
        script.add(tree)
    if not script.written:
        raise FlowError("SQL: the script writes nothing: it needs INSERT INTO table SELECT ...")
    return script


_ROWS = 100_000


class Script:
    """A script: its tables, views and functions so far, and the flow of its INSERT statements.

    `notes`: state that is kept for ever, results that are updated, and options that change nothing.
    """

    def __init__(self, name: str, functions: Mapping[str, Any] | None) -> None:
        self.flow = Dataflow(name)
        self.watermarks: dict[str, Watermark] = {}
        self.written = 0
        self.notes: list[str] = []
        self._tables: dict[str, TableDefinition] = {}
        self._computed: dict[str, dict[str, exp.Expr]] = {}
        self._views: dict[str, exp.Expr] = {}
        self._functions: dict[str, UserFunction] = checked_functions(functions)
        self._streams: dict[str, Stream] = {}
        self._ttl: str | None = None

    def add(self, tree: exp.Expr) -> None:
        """Add a statement."""
        if isinstance(tree, exp.Create):
            kinds = {"TABLE": self._create_table, "VIEW": self._create_view, "FUNCTION": self._create_function}
            create = kinds.get(str(tree.args.get("kind")).upper())
            if create is None:
                raise refusal(tree, "there are CREATE TABLE, CREATE VIEW and CREATE FUNCTION")
            create(tree)
        elif isinstance(tree, exp.Insert):
            self._insert(tree)
        elif isinstance(tree, exp.Set):
            self._set(tree)
        else:
            raise refusal(tree, "there are CREATE TABLE, CREATE VIEW, CREATE FUNCTION, SET and INSERT INTO")

    def _create_table(self, tree: exp.Create) -> None:
        check_parts(tree, frozenset({"this", "kind", "properties", "exists"}))
        if not isinstance(tree.this, exp.Schema):
            raise refusal(tree, "expected CREATE TABLE name (columns) WITH (options)")
        name = tree.this.this.name
        fields, key = list[pa.Field](), tuple[str, ...]()
        computed: dict[str, exp.Expr] = {}
        for part in tree.this.expressions:
            if isinstance(part, exp.PrimaryKey):
                key = tuple(each.name for each in part.expressions)
            elif isinstance(part, exp.ColumnDef):
                made = self._column(part, fields)
                if made is not None:
                    computed[part.name] = made
            else:
                raise refusal(part, "expected a column, PRIMARY KEY or WATERMARK")
        options, partitions = _properties(tree.args.get("properties"))
        self._free(name)
        self._tables[name] = TableDefinition(name, pa.schema(fields), options, self.watermarks.get(name), key, partitions)
        self._computed[name] = computed

    def _column(self, part: exp.ColumnDef, fields: list[pa.Field]) -> exp.Expr | None:
        """Add a column to the fields, or return the expression of one that is computed."""
        for constraint in part.args.get("constraints") or ():
            kind = constraint.kind
            if isinstance(kind, exp.ComputedColumnConstraint):
                made: exp.Expr = kind.this
                return made
            if not isinstance(kind, exp.NotNullColumnConstraint | exp.CommentColumnConstraint | exp.PrimaryKeyColumnConstraint):
                raise refusal(part, f"{text_of(constraint)} isn't supported")
        fields.append(pa.field(part.name, arrow_type(part.args["kind"])))
        return None

    def _create_view(self, tree: exp.Create) -> None:
        check_parts(tree, frozenset({"this", "kind", "expression", "properties", "exists"}))
        self._free(tree.this.name)
        self._views[tree.this.name] = inlined(tree.expression, self._views)

    def _create_function(self, tree: exp.Create) -> None:
        check_parts(tree, frozenset({"this", "kind", "expression", "properties", "exists"}))
        name, path = tree.this.name, tree.expression.name
        if name.upper() in self._functions:
            return  # the program gave it
        try:
            function = function_at(path)
        except (ImportError, AttributeError, ValueError) as error:
            raise FlowError(
                f"SQL: CREATE FUNCTION {name} AS '{path}': expected 'module.function' of a Python function, or give one by "
                f"evenflow sql --function {name}=module.function: {error}"
            ) from error
        self._functions.update(checked_functions({name: function}))

    def _set(self, tree: exp.Set) -> None:
        for item in tree.expressions:
            name, value = item.this.this.name, item.this.expression.name
            if name != TTL:
                raise FlowError(f"SQL: SET '{name}': the only setting is '{TTL}'; others are in the configuration of the job")
            self._ttl = FOR_EVER if value.strip().split()[0] == "0" else value.replace(" ", "")

    def _free(self, name: str) -> None:
        if name in self._tables or name in self._views:
            raise FlowError(f"SQL: there are two tables or views `{name}`")

    def _insert(self, tree: exp.Insert) -> None:
        check_parts(tree, frozenset({"this", "expression"}))
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        table = self._tables.get(target.name)
        if table is None:
            raise FlowError(f"SQL: INSERT INTO {target.name}: there is no such table; there are: {', '.join(self._tables)}")
        names = [each.name for each in tree.this.expressions] if isinstance(tree.this, exp.Schema) else table.schema.names
        if sorted(names) != sorted(table.schema.names):
            raise refusal(tree.this, f"name all columns of the table: {', '.join(table.schema.names)}")
        query = _named(inlined(tree.expression, self._views), names)
        read = {each.name for each in query.find_all(exp.Table) if each.name in self._tables}
        looked_up = {each.name for each in query.find_all(exp.Table) if each.name in read and each.args.get("version")}
        tables = {name: self._named_table(name) for name in sorted(looked_up)}
        streams = {name: self._named_stream(name) for name in sorted(read - looked_up)}
        columns = {name: each.columns for name, each in streams.items()} | {name: each.names for name, each in tables.items()}
        made = Query(streams, tables, self._ttl, self._functions)
        found = made.shown(made.relation(resolved(query, columns))).stream
        self.notes += [f"{table.name}: {note}" for note in made.notes]
        known = self.flow.graph.columns_of(Input(found.node.id, found.port)).types
        if len(known) != len(names):
            raise refusal(tree, f"the query has {len(known)} columns, the table {len(names)}")
        renamed = {ours: theirs for ours, theirs in zip(known, names, strict=True) if ours != theirs}
        found = found.rename(renamed) if renamed else found
        types = {theirs: table.schema.field(theirs).type for ours, theirs in zip(known, names, strict=True)}
        unlike = {name: kind for (name, kind), ours in zip(types.items(), known.values(), strict=True) if kind != ours}
        found = found.cast(unlike) if unlike else found
        selected(found, table.schema.names).write(sink_of(table))
        if settled := settled_by_checkpoints(table):
            self.notes.append(f"{table.name}: files are closed by checkpoints; these options change nothing: {', '.join(settled)}")
        self.written += 1

    def _check_source(self, table: TableDefinition, stream: Stream) -> None:
        """Raise FlowError if the table declares a column, or an event time, that its source doesn't have."""
        known = self.flow.graph.columns_of(Input(stream.node.id, stream.port))
        missing = next((name for name in table.schema.names if known.lacks(name)), None)
        if missing is not None:
            raise FlowError(f"SQL: table `{table.name}`: its source has no column `{missing}`; there are: {known.listed()}")
        time = event_time_column(stream)
        if table.watermark is not None and time != table.watermark.column:
            raise FlowError(f"SQL: table `{table.name}`: its event time is {time}, not {table.watermark.column}")

    def _named_stream(self, name: str) -> NamedStream:
        """Return the stream of a table, which is read once."""
        stream = self._streams.get(name)
        arrivals = tuple(column for column, made in self._computed[name].items() if _is_arrival(made))
        if stream is None:
            table = self._tables[name]
            mark = table.watermark if table.watermark is not None and table.watermark.column in self._computed[name] else None
            stream = self.flow.read(source_of(table if mark is None else replace(table, watermark=None)))
            for column, expression in self._computed[name].items():
                if column in arrivals:
                    continue
                stream = stream.with_columns({column: to_expression(expression, lambda each: col(each.name), functions=self._functions)})
            if mark is not None:
                stream = stream.with_time(mark.column, max_delay=f"{mark.delay}us")
            self._check_source(table, stream)
            self._streams[name] = stream
        known = self.flow.graph.columns_of(Input(stream.node.id, stream.port))
        there = tuple(known.types) if known.complete else tuple(self._tables[name].schema.names)
        return NamedStream(stream, (*there, *arrivals), arrivals)

    def _named_table(self, name: str) -> NamedTable:
        """Return the rows of a table of files, which are read now. Raises FlowError for another table."""
        table = self._tables[name]
        source = source_of(table)
        if not isinstance(source, FileSource) or self._computed[name]:
            raise FlowError(
                f"SQL: table `{name}`: only a table of files can be looked up, with 'connector' = 'filesystem', without computed columns"
            )
        source.start()
        reader = source.reader(0, 1)
        batches = list[pa.RecordBatch]()
        while not reader.finished:
            batch = reader.poll(_ROWS)
            batches += [] if batch is None else [batch.rows]
        return NamedTable(pa.Table.from_batches(batches, None if batches else table.schema), tuple(table.schema.names))


def function_at(path: str) -> Any:
    """Return the object at `module.name`. Raises ImportError, AttributeError or ValueError if there is none."""
    module, _, attribute = path.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _is_arrival(expression: exp.Expr) -> bool:
    return isinstance(expression, exp.Anonymous) and expression.name.upper() == "PROCTIME"


def _properties(clause: exp.Expr | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options of WITH, and the columns of PARTITIONED BY."""
    options, partitions = dict[str, str](), tuple[str, ...]()
    for part in clause.expressions if clause is not None else ():
        if isinstance(part, exp.PartitionedByProperty):
            partitions = tuple(each.name for each in part.this.expressions)
        elif isinstance(part, exp.FileFormatProperty):
            options["format"] = part.this.name
        elif isinstance(part, exp.Property) and "value" in part.args:
            options[part.this.name if isinstance(part.this, exp.Expr) else str(part.this)] = part.args["value"].name
        elif not isinstance(part, exp.TemporaryProperty):
            raise refusal(part, "it isn't an option of a table")
    return options, partitions


def _named(query: exp.Expr, names: list[str]) -> exp.Expr:
    """Give the columns of a query the names of the table's, by place, since a query may name two of its columns alike."""
    if isinstance(query, exp.Select) and not query.is_star and len(query.expressions) == len(names):
        query.set("expressions", [exp.alias_(each.unalias(), name) for each, name in zip(query.expressions, names, strict=True)])
    return query
