"""NexMark's stream of people, and the choice of people that auctions and bids refer to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..generated.random_bits import below, lower, random_bits
from .numbering import EPOCH
from .settings import FIRST_ID, LEAD, NexmarkSettings
from .text import RandomText

ACTIVE = 1000
"""The number of newest people to whom references that are not hot go."""

AVERAGE_BYTES = 200
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
NAMES = pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])
CITIES = pa.array(["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"])
STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CARD_PARTS = pa.array([f"{part:04}" for part in range(10_000)])
_NAME, _CARD, _CARD_END, _PLACE, _LOCAL, _DOMAIN, _EXTRA = range(100, 107)


def columns(settings: NexmarkSettings, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the columns of the people with these event numbers, without their times."""
    card, card_end, place = (random_bits(settings.seed, purpose, numbers) for purpose in (_CARD, _CARD_END, _PLACE))
    letters = RandomText(settings.seed, " ")
    local = pc.ascii_trim(letters.words(random_bits(settings.seed, _LOCAL, numbers), 3, 6), " ")
    domain = pc.ascii_trim(letters.words(random_bits(settings.seed, _DOMAIN, numbers), 3, 4), " ")
    name = NAMES.take(pa.array(below(random_bits(settings.seed, _NAME, numbers), len(NAMES))))
    email = pc.binary_join_element_wise(pc.binary_join_element_wise(local, domain, "@"), ".com", "")
    parts = (CARD_PARTS.take(pa.array(below(bits, len(CARD_PARTS)))) for bits in (card, lower(card), card_end, lower(card_end)))
    made = {
        "id": pa.array(last_person(numbers) + FIRST_ID),
        "name": name,
        "emailAddress": email,
        "creditCard": pc.binary_join_element_wise(*parts, " "),
        "city": CITIES.take(pa.array(below(place, len(CITIES)))),
        "state": STATES.take(pa.array(below(lower(place), len(STATES)))),
    }
    size = 8 + sum(pc.binary_length(column).to_numpy().astype(np.int64) for column in list(made.values())[1:])
    extra = RandomText(settings.seed).padding(random_bits(settings.seed, _EXTRA, numbers), size, AVERAGE_BYTES)
    return {**made, "extra": extra}


def last_person(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of the newest person at each event, inclusive, counted from 0."""
    return numbers // EPOCH


def some_person(bits: npt.NDArray[np.uint64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Choose one of the active people at each event, or of the next `LEAD` future ones, counted from 0."""
    people = last_person(numbers) + 1
    active = np.minimum(people, ACTIVE)
    return people - active + below(bits, active + LEAD)
