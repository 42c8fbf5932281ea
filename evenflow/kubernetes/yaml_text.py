"""Resources as YAML, with the placeholders of a chart as Helm's templates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from .placeholders import Each, Expression

_ENTRY = re.compile(r"^( *)(- )?__each_([\w.]+)__(: null)?$", re.MULTILINE)
_EXPRESSION = re.compile(r"__expression_(\d+)__")


class _Dumper(yaml.SafeDumper):
    """A dumper that repeats what occurs twice, and notes the expressions that it writes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.alias_key = None

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of lists."""
        super().increase_indent(flow, indentless=False)


def yaml_of(resource: Any) -> str:
    """Write a resource as YAML.

    >>> print(yaml_of({"image": Expression("toJson .Values.image"), "env": [{"name": "A", "value": "1"}, Each("env")]}), end="")
    image: {{ toJson .Values.image }}
    env:
      - name: A
        value: '1'
      {{- range .Values.env }}
      - {{ toJson . }}
      {{- end }}
    """
    expressions: list[str] = []

    class Dumper(_Dumper):
        """A dumper of one resource."""

    def expression(dumper: Dumper, found: Expression) -> yaml.Node:
        expressions.append(found.text)
        return dumper.represent_scalar("tag:yaml.org,2002:str", f"__expression_{len(expressions) - 1}__")

    def each(dumper: Dumper, found: Each) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", f"__each_{found.path}__")

    Dumper.add_representer(Expression, expression)
    Dumper.add_representer(Each, each)
    text: str = yaml.dump(resource, Dumper=Dumper, sort_keys=False, width=float("inf"), allow_unicode=True)
    return _EXPRESSION.sub(lambda found: f"{{{{ {expressions[int(found[1])]} }}}}", _ENTRY.sub(_range, text))


def _range(found: re.Match[str]) -> str:
    """Return the loop over the items of a list, or over the entries of a mapping."""
    indent, item, path, _ = found.groups()
    if item is not None:
        lines = [f"{{{{- range .Values.{path} }}}}", "- {{ toJson . }}"]
    else:
        lines = [f"{{{{- range $name, $value := .Values.{path} }}}}", "{{ $name }}: {{ toJson $value }}"]
    return "\n".join(f"{indent}{line}" for line in [*lines, "{{- end }}"])


def documents(resources: Iterable[Any]) -> str:
    """Write several resources as one stream."""
    return "---\n".join(yaml_of(resource) for resource in resources)
