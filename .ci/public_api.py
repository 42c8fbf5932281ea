"""The public API as a stub, `docs/api.txt`: `write` creates it, `check` lists changes that would break its users.

The stub has the names in `evenflow.__all__`, with everything that a class inherits, so it is read without the package's history.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs" / "api.txt"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_KINDS = {
    griffe.ParameterKind.positional_only: "",
    griffe.ParameterKind.positional_or_keyword: "",
    griffe.ParameterKind.keyword_only: "",
    griffe.ParameterKind.var_positional: "*",
    griffe.ParameterKind.var_keyword: "**",
}


def stub() -> str:
    """Return the present public API."""
    package = griffe.load("evenflow", search_paths=[ROOT / "src"], resolve_aliases=True)
    exports = sorted(str(name) for name in package.exports or ())
    lines = ["# The public API of evenflow, by `make api`.", f"__all__ = {exports}"]
    for name in exports:
        lines += ["", *_rendered(name, package[name], "")]
    return "\n".join(lines) + "\n"


def broken(old: str, new: str) -> list[str]:
    """List the changes in `new` that break users of `old`, a line each."""
    before, after = (griffe.visit("evenflow", filepath=STORED, code=code) for code in (old, new))
    found = (each.explain(griffe.ExplanationStyle.ONE_LINE) for each in griffe.find_breaking_changes(before, after))
    return [_COLOUR.sub("", " ".join(line.split())) for line in found]


def _rendered(name: str, found: griffe.Object | griffe.Alias, indent: str) -> Iterator[str]:
    if found.is_class:
        yield f"{indent}class {name}:"
        members = {each: member for each, member in found.all_members.items() if each == "__init__" or not each.startswith("_")}
        for each, member in sorted(members.items()):
            yield from _rendered(each, member, f"{indent}    ")
        if not members:
            yield f"{indent}    ..."
    elif found.is_function:
        for label in ("staticmethod", "classmethod", "property"):
            if label in found.labels:
                yield f"{indent}@{label}"
        yield f"{indent}def {name}({', '.join(_parameters(found))}) -> {found.returns or 'None'}: ..."
    elif found.is_attribute:
        yield f"{indent}{name}: {found.annotation or 'Any'}"


def _parameters(function: griffe.Object | griffe.Alias) -> Iterator[str]:
    keywords = False
    for parameter in function.parameters:
        if parameter.kind is griffe.ParameterKind.keyword_only and not keywords:
            yield "*"
        keywords = keywords or parameter.kind in {griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional}
        annotation = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = f" = {parameter.default}" if parameter.default is not None and not _KINDS[parameter.kind] else ""
        yield f"{_KINDS[parameter.kind]}{parameter.name}{annotation}{default}"


def main(command: str) -> int:
    """Run `write` or `check`; return the exit code."""
    if command == "write":
        STORED.write_text(stub())
        return 0
    found = broken(STORED.read_text(), stub())
    if found:
        print(*found, sep="\n", file=sys.stderr)
        print("These changes break users of the public API. If they are intended: `make api`, and a line in CHANGELOG.md.", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
