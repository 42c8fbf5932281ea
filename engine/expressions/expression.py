"""Expressions as users write them: operators and methods build a tree, and nothing is computed.

>>> (col("price") * col("qty") > 100) & col("city").is_in(["Rome", "Oslo"])
((price * qty) > 100) & city.is_in(['Rome', 'Oslo'])
>>> when(col("delay") > 0).then(col("delay")).otherwise(0)
when(delay > 0).then(delay).otherwise(0)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import FlowError, short
from ..types.names import type_named
from .namespaces import Lists, Structs, Texts, Times
from .options import option
from .trees.text import text_of
from .trees.tree import Call, Column, Literal, Tree

TypeLike: TypeAlias = pa.DataType | str | type
"""An Arrow type, its name, or a Python type."""


class Expression:
    """A computation over the columns of a row, made by `ef.col`, `ef.lit` and `ef.when`, by operators and by methods.

    Null in any operand gives null, except where a method says otherwise. `&` and `|` are SQL's three-valued AND and OR. Whole
    numbers that overflow and division of whole numbers by zero are errors; floats follow IEEE 754, but NaN equals itself and is
    greater than all other numbers in comparisons.
    """

    __slots__ = ("tree",)

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __repr__(self) -> str:
        return text_of(self.tree)

    def __reduce__(self) -> Any:
        return Expression, (self.tree,)

    __hash__ = None  # type: ignore[assignment] # `==` makes an expression

    def __bool__(self) -> NoReturn:
        raise FlowError(
            f"the expression {self!r:.500} has no truth value while the flow is written: use & | ~ in place of and, or, not, with "
            "parentheses around comparisons, as in (a > 1) & (b < 2); between(a, b) in place of a < x < b; and ef.when in place of if"
        )

    def __iter__(self) -> NoReturn:
        raise FlowError(f"the expression {self!r:.500} can't be iterated: .list.get(0) and .struct.field(...) take parts of a value")

    def call(self, name: str, *arguments: Any) -> Expression:
        """Return the function `name` of this expression and more arguments, which may be expressions or values."""
        return Expression(Call(name, (self.tree, *(tree_of(argument) for argument in arguments))))

    def __add__(self, other: Any) -> Expression:
        return self.call("add", other)

    def __radd__(self, other: Any) -> Expression:
        return lit(other).call("add", self)

    def __sub__(self, other: Any) -> Expression:
        return self.call("sub", other)

    def __rsub__(self, other: Any) -> Expression:
        return lit(other).call("sub", self)

    def __mul__(self, other: Any) -> Expression:
        return self.call("mul", other)

    def __rmul__(self, other: Any) -> Expression:
        return lit(other).call("mul", self)

    def __truediv__(self, other: Any) -> Expression:
        return self.call("truediv", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return lit(other).call("truediv", self)

    def __floordiv__(self, other: Any) -> Expression:
        return self.call("floordiv", other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return lit(other).call("floordiv", self)

    def __mod__(self, other: Any) -> Expression:
        return self.call("mod", other)

    def __rmod__(self, other: Any) -> Expression:
        return lit(other).call("mod", self)

    def __pow__(self, other: Any) -> Expression:
        return self.call("pow", other)

    def __rpow__(self, other: Any) -> Expression:
        return lit(other).call("pow", self)

    def __neg__(self) -> Expression:
        return self.call("neg")

    def __lt__(self, other: Any) -> Expression:
        return self.call("lt", other)

    def __le__(self, other: Any) -> Expression:
        return self.call("le", other)

    def __gt__(self, other: Any) -> Expression:
        return self.call("gt", other)

    def __ge__(self, other: Any) -> Expression:
        return self.call("ge", other)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self.call("eq", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self.call("ne", other)

    def __and__(self, other: Any) -> Expression:
        return self.call("and", other)

    def __rand__(self, other: Any) -> Expression:
        return lit(other).call("and", self)

    def __or__(self, other: Any) -> Expression:
        return self.call("or", other)

    def __ror__(self, other: Any) -> Expression:
        return lit(other).call("or", self)

    def __invert__(self) -> Expression:
        return self.call("not")

    def is_null(self) -> Expression:
        """Test for null; never null itself."""
        return self.call("is_null")

    def is_not_null(self) -> Expression:
        """Test for any value but null; never null itself."""
        return self.call("is_not_null")

    def fill_null(self, value: Any) -> Expression:
        """Take `value`, a value or an expression, in place of null."""
        return self.call("fill_null", value)

    def is_nan(self) -> Expression:
        """Test floats for NaN; false for other numbers."""
        return self.call("is_nan")

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Test if it equals one of `values`. As in SQL the result is null for null, and if nothing is equal and a null is among them."""
        if isinstance(values, (str, bytes, Expression)) or not isinstance(values, Iterable):
            raise FlowError(f"is_in({short(values)}): expected a list of values, for example is_in([1, 2])")
        return self.call("is_in", list(values))

    def between(self, lower: Any, upper: Any) -> Expression:
        """Test if it is at least `lower` and at most `upper`."""
        return self.call("ge", lower).call("and", self.call("le", upper))

    def cast(self, kind: TypeLike) -> Expression:
        """Convert to another type, as `stream.cast` does: `cast("int64")`. A value that the type can't hold is an error."""
        try:
            return self.call("cast", pa.scalar(None, type_named(kind)))
        except ValueError as error:
            raise FlowError(f"cast({short(kind)}): {error}") from error

    def abs(self) -> Expression:
        """Take the absolute value."""
        return self.call("abs")

    def round(self, decimals: int = 0) -> Expression:
        """Round to a number of decimals, and a number halfway between two to the even one, as Python's `round` does."""
        return self.call("round", option("round", "decimals", decimals, int))

    def floor(self) -> Expression:
        """Round down to a whole number, of the same type."""
        return self.call("floor")

    def ceil(self) -> Expression:
        """Round up to a whole number, of the same type."""
        return self.call("ceil")

    def sqrt(self) -> Expression:
        """Take the square root, a float64; NaN for a negative number."""
        return self.call("sqrt")

    def exp(self) -> Expression:
        """Raise e to this power; a float64."""
        return self.call("exp")

    def log(self) -> Expression:
        """Take the natural logarithm, a float64; minus infinity for zero, NaN for a negative number."""
        return self.call("log")

    @property
    def str(self) -> Texts[Expression]:
        """The functions of texts."""
        return Texts(self.call)

    @property
    def dt(self) -> Times[Expression]:
        """The functions of dates, times and durations."""
        return Times(self.call)

    @property
    def list(self) -> Lists[Expression]:
        """The functions of lists."""
        return Lists(self.call)

    @property
    def struct(self) -> Structs[Expression]:
        """The functions of structs."""
        return Structs(self.call)


class When:
    """A condition that waits for its value: call `.then(value)`."""

    def __init__(self, pairs: tuple[Tree, ...]) -> None:
        self._pairs = pairs

    def then(self, value: Any) -> Then:
        """Give the value, or the expression, for rows where the condition is true."""
        return Then((*self._pairs, tree_of(value)))


class Then(Expression):
    """Conditions with their values; null where none is true. `.otherwise(value)` gives another value, `.when(...)` a condition more."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: tuple[Tree, ...]) -> None:
        super().__init__(Call("case", (*pairs, Literal(pa.scalar(None)))))
        self._pairs = pairs

    def when(self, condition: Any) -> When:
        """Add a condition for rows where none before it is true."""
        return When((*self._pairs, tree_of(condition)))

    def otherwise(self, value: Any) -> Expression:
        """Give the value, or the expression, for rows where no condition is true."""
        return Expression(Call("case", (*self._pairs, tree_of(value))))


def col(name: str) -> Expression:
    """Return the expression of a column.

    >>> import evenflow as ef
    >>> flow, rows = ef.Dataflow("totals"), []
    >>> orders = flow.read(ef.from_items([{"price": 2.5, "qty": 4}, {"price": 1.0, "qty": 3}]))
    >>> large = orders.with_columns(total=ef.col("price") * ef.col("qty")).filter(ef.col("total") > 5)
    >>> _ = large.write(ef.to_list(rows))
    >>> _ = flow.run(runtime="local").wait()
    >>> rows
    [{'price': 2.5, 'qty': 4, 'total': 10.0}]
    """
    if not isinstance(name, str) or not name:
        raise FlowError(f'col({short(name)}): expected the name of a column, for example ef.col("price")')
    return Expression(Column(name))


def lit(value: Any) -> Expression:
    """Return the expression of one value for all rows: a number, text, time, None, or a list of such, or an Arrow scalar.

    A plain value in an operator or a method is a literal already; `ef.lit` is for those that begin an expression:
    `ef.lit("flight ") + ef.col("number")`.
    """
    return Expression(tree_of(value))


def when(condition: Any) -> When:
    """Begin a choice: `ef.when(condition).then(value).when(...).then(...).otherwise(value)`; the first true condition decides.

    A null as a condition counts as false. Without `.otherwise` the rest is null. Values are computed only for the rows that take
    them, so a condition may guard a division.

    >>> import evenflow as ef
    >>> flow, rows = ef.Dataflow("guard"), []
    >>> numbers = flow.read(ef.from_items([{"a": 7, "b": 2}, {"a": 7, "b": 0}]))
    >>> _ = numbers.select(half=ef.when(ef.col("b") != 0).then(ef.col("a") // ef.col("b")).otherwise(-1)).write(ef.to_list(rows))
    >>> _ = flow.run(runtime="local").wait()
    >>> rows
    [{'half': 3}, {'half': -1}]
    """
    return When((tree_of(condition),))


def tree_of(value: Any) -> Tree:
    """Return the tree of an expression, or the literal of any other value. Raises FlowError for a value that Arrow doesn't know."""
    if isinstance(value, Expression):
        return value.tree
    if isinstance(value, When):
        raise FlowError("when(...) has no value yet: call .then(value), and .otherwise(value) for all other rows")
    if isinstance(value, pa.Scalar):
        return Literal(value)
    try:
        return Literal(pa.scalar(value))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        problem = f"{short(value)} ({type(value).__name__}) is no value of a column: {error}"
        raise FlowError(f"{problem}; give a number, a text, a time, a list of such, or an expression such as ef.col(...)") from error


def instead_of_arrow(value: Any) -> str:
    """Return advice for errors about an expression of Arrow's, "" for any other value."""
    return '; write ef.col("price") > 5 in place of pc.field("price") > 5' if isinstance(value, pc.Expression) else ""
