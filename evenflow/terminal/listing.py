"""Lists that `print` and notebooks show as tables. They load rich when the first one is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")


class Listing(list[T], Generic[T]):
    """A list that `print` and notebooks show with the function `draw`."""

    def __init__(self, items: Iterable[T], draw: Callable[[Sequence[T]], RenderableType]) -> None:
        super().__init__(items)
        self._draw = draw

    def __str__(self) -> str:
        from .console import as_text

        return as_text(self._draw(self))

    def _repr_html_(self) -> str:
        from .console import as_html

        return as_html(self._draw(self))
