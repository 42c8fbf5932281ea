"""Faults in states of declared types: objects that are not saved as they are."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.engine.typed_states.object_type import ObjectType
from evenflow.engine.typed_states.value_types import ListType

Patch = pytest.MonkeyPatch


def fields_are_restored_as_their_defaults(patch: Patch) -> None:
    value = ObjectType.value
    with_defaults = {"rows", "totals", "value", "halves"}

    def forgetful(self: Any, plain: Any) -> Any:
        return value(self, {name: each for name, each in plain.items() if name not in with_defaults})

    patch.setattr(ObjectType, "value", forgetful)


def only_the_newest_parts_of_a_list_are_saved(patch: Patch) -> None:
    plain = ListType.plain

    def shortened(self: Any, value: Any, newest: int | None = None) -> Any:
        return plain(self, value, 2 if newest is None else newest)

    patch.setattr(ListType, "plain", shortened)
