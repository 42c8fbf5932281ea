"""The evaluation of expressions in an operator, whose errors name the operator, the expression and the row.

>>> from .expression import col
>>> rows = Batch(pa.record_batch({"a": [1, 2**62], "b": [2, 2]}))
>>> Evaluator([(col("a") * col("b")).tree], "step").values(rows)
Traceback (most recent call last):
    ...
evenflow.engine.errors.RecordError: operator `step`: a * b fails: the result overflows its type; cast("float64") or to a decimal holds more
  record: {'a': 4611686018427387904, 'b': 2}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Batch, NoPythonValueError
from ..columns import Columns
from ..errors import RecordError
from .choices import run_choosing
from .program import FAILURES, Program, reason
from .trees.problems import BindingError, missing_column
from .trees.text import text_of
from .trees.tree import Tree, columns_of, columns_of_all

_OVERFLOW = '; cast("float64") or to a decimal holds more'


class Evaluator:
    """Expressions of the operator named `operator`, bound to each schema that comes; `what` begins its errors."""

    def __init__(self, trees: Sequence[Tree], operator: str, what: str = "") -> None:
        self.trees, self._operator, self._what = tuple(trees), operator, what
        self._program: Program | None = None
        self._chooses = False

    def bind(self, schema: pa.Schema) -> Program:
        """Return the program for a schema. Raises RecordError if the expressions don't fit its columns."""
        program = self._program
        if program is None or (schema is not program.schema and not schema.equals(program.schema)):
            try:
                program = self._program = Program(self.trees, schema)
            except BindingError as error:
                raise RecordError(self._operator, f"{self._what}{error}") from error
        return program

    def values(self, batch: Batch) -> list[pa.Array]:
        """Return the values of each expression, one for each row. Raises RecordError."""
        program = self.bind(batch.rows.schema)
        try:
            return self._run(program, batch.rows)
        except FAILURES as error:
            failed = error
        raise self._refusal(program, batch, failed)

    def _run(self, program: Program, rows: pa.RecordBatch) -> list[pa.Array]:
        if not (self._chooses and program.chooses):
            try:
                return program.run(rows)
            except FAILURES:
                if not program.chooses:
                    raise
        found = run_choosing(program, rows)
        self._chooses = True  # it will fail for later batches too
        return found

    def _refusal(self, program: Program, batch: Batch, error: BaseException) -> RecordError:
        """Return the error of the first row that fails, given that there is one."""
        while batch.num_rows > 1:
            half = batch.num_rows // 2
            first, rest = batch.slice(0, half), batch.slice(half, batch.num_rows - half)
            try:
                self._run(program, first.rows)
            except FAILURES as earlier:
                batch, error = first, earlier
            else:
                batch = rest
        tree, error = self._failing(batch, error)
        text = reason(error)
        hint = _OVERFLOW if text == reason(pa.ArrowInvalid("overflow")) else ""
        problem = f"{self._what}{text_of(tree):.500} fails: {text}{hint}"
        return RecordError(self._operator, problem, record=_shown(batch, tree))

    def _failing(self, row: Batch, error: BaseException) -> tuple[Tree, BaseException]:
        """Return the expression that fails for this row, with its error."""
        for tree in self.trees:
            alone = Program([tree], row.rows.schema)
            try:
                run_choosing(alone, row.rows)
            except FAILURES as problem:
                return tree, problem
        return self.trees[0], error


def _shown(row: Batch, tree: Tree) -> dict[str, Any]:
    """Return the row, or if Python can't represent it the text of the columns that the expression reads."""
    try:
        return row.to_rows()[0]
    except NoPythonValueError:
        return {name: _text(row.rows.column(name)[0]) for name in sorted(columns_of(tree))}


def _text(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (ValueError, OverflowError):  # a time that Python can't represent
        return f"{value.cast(pa.int64())} as {value.type}"


class Condition:
    """A boolean expression of an operator; `what` begins its errors."""

    def __init__(self, tree: Tree, operator: str, what: str = "") -> None:
        self.tree, self._evaluator = tree, Evaluator([tree], operator, what)
        self._operator, self._what = operator, what

    def true_rows(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows where it is true, shape (rows,); null counts as false, as in SQL. Raises RecordError."""
        (values,) = self._evaluator.values(batch)
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.bool_)
        if not pa.types.is_boolean(values.type):
            raise RecordError(self._operator, self._what + no_condition(self.tree, values.type))
        mask: npt.NDArray[np.bool_] = (pc.fill_null(values, False) if values.null_count else values).to_numpy(zero_copy_only=False)
        return mask


def no_condition(tree: Tree, kind: pa.DataType) -> str:
    """Describe an expression that is no condition."""
    return f"{text_of(tree):.500} has the type {kind}, expected booleans"


def condition_problem(tree: Tree, known: Columns) -> str | None:
    """Describe why the expression is certainly no condition over the known columns; None if it may be one."""
    try:
        (kind,) = checked_types([tree], known)
    except BindingError as error:
        return str(error)
    return None if kind is None or pa.types.is_boolean(kind) else no_condition(tree, kind)


def checked_types(trees: Sequence[Tree], known: Columns) -> list[pa.DataType | None]:
    """Return the types of the expressions over the known columns, None for those that aren't certain.

    Raises BindingError for a missing column or types that don't fit, if these are certain.
    """
    missing = next((name for name in sorted(columns_of_all(trees)) if known.lacks(name)), None)
    if missing is not None:
        raise BindingError(missing_column(missing, known.types))
    return [_type_of(tree, known) for tree in trees]


def _type_of(tree: Tree, known: Columns) -> pa.DataType | None:
    types = {name: known.type_of(name) for name in sorted(columns_of(tree))}
    if None in types.values():
        return None
    (found,) = Program([tree], pa.schema(list(types.items()))).types
    return None if pa.types.is_null(found) else found
