"""The version of the shape of a state, which users count up when their code keeps another state than before.

>>> version = StateVersion(2, "Carts", migrates=False)
>>> version.problem(2), version.problem(3)
(None, 'the state was written by version 3 of `Carts`, this code has version 2: start it with the code of version 3 or a later one')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LARGEST = 2**32 - 1
"""The largest version: it is saved in four bytes."""


@dataclass(frozen=True, slots=True)
class StateVersion:
    """The version of a state in some code. `number` is stored; `code`, the name of the user's function, and all others are not.

    `migrates`: the code converts states of older versions; `renamed`: the former names of its states, by name.
    """

    number: int = 1
    code: str = ""
    migrates: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    def problem(self, saved: int) -> str | None:
        """Return why this code can't read a state that version `saved` wrote; None if it can."""
        both = f"the state was written by version {saved} of `{self.code}`, this code has version {self.number}"
        if saved > self.number:
            return f"{both}: start it with the code of version {saved} or a later one"
        if saved < self.number and not self.migrates:
            return f"{both} and no migrate_state: define migrate_state, which converts a state of version {saved}"
        return None

    def under_new_names(self, parts: Mapping[str, str]) -> dict[str, str]:
        """Return the parts of a saved state, with what belongs to a renamed state under its new name.

        >>> StateVersion(renamed={"cart": "basket"}).under_new_names({"basket": "value of object", "basket.total": "float"})
        {'cart': 'value of object', 'cart.total': 'float'}
        """
        return {self._new_name(part): text for part, text in parts.items()}

    def _new_name(self, part: str) -> str:
        for new, old in self.renamed.items():
            if part == old or part.startswith((f"{old}.", f"{old}[", f"{old}{{")):
                return f"{new}{part[len(old) :]}"
        return part


FIRST = StateVersion()
"""The version of states without one."""
