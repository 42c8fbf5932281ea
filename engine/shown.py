"""The display of figures, plans and reports in notebooks: the text that `print` shows, with its lines and columns.

>>> class Load(Shown):
...     def __str__(self) -> str:
...         return "a < b"
>>> Load()._repr_html_()
'<pre>a &lt; b</pre>'
"""

from __future__ import annotations

from html import escape


class Shown:
    """The base of classes whose `__str__` notebooks show unchanged."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self), quote=False)}</pre>"
