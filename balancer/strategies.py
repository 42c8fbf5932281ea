"""Migration strategies: plan the steps from the current routing table to the target.

Invariant: for all tables, the steps together move exactly the keys whose worker differs, each once. A key with its own route
never moves with its group (`Move.staying`). In a step, a pair of workers has at most one move.

Steps that relieve most come first: of the pieces of a pair of workers, single keys and then the groups with the most load; among
pairs, that whose source has the most load (first the sub-move that puts a new task to work: DRRS, 2025).

Splits of hot keys change in separate steps, in the same way for all strategies: before the other steps some keys are gathered or
shared by other workers, and after them more keys are split. So a key that moves is not split, and a key that is split is at its
future home.

>>> import numpy as np
>>> current, target = RoutingTable(np.array([0, 0, 1, 1], np.uint16)), RoutingTable(np.array([1, 1, 1, 0], np.uint16))
>>> [[(move.source, move.target, move.groups) for move in step.moves] for step in plan_steps("fluid", current, target)]
[[(0, 1, (0,))], [(0, 1, (1,))], [(1, 0, (3,))]]
>>> [step.moves for step in plan_steps("sudden", current, target)] == [tuple(current.moves_to(target))]
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..engine.errors import RequestError
from ..engine.protocol.routing import Move, RoutingTable
from ..engine.protocol.split_route import SplitRoute
from ..state.hashing import group_of

LAZY_STEPS, LAZY_GROUPS = 32, 8
"""The steps of a lazy move of many groups, and the least groups or keys of a pair of workers in each. In a step, event time stands still at
both owners, and records of missing keys wait. With all keys in one step, every batch has missing keys until the move is over."""

Pair = tuple[int, int]
"""The indexes of the source and the target worker."""

Loads = npt.NDArray[np.float64]
"""The load of each key group, shape (key_groups,)."""


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that happen together; the next step waits until their state has arrived.

    `lazy`: the new owner fetches a key's state when a record needs it. `pause`: the upstream workers wait until the step is done.
    `restart`: the job takes a checkpoint and starts again with the new table.
    """

    moves: tuple[Move, ...]
    lazy: bool = False
    pause: bool = False
    restart: bool = False


def sudden(current: RoutingTable, target: RoutingTable) -> Iterator[Step]:
    """Move everything in one step, while the stream runs (Megaphone's all-at-once)."""
    yield from _together(current, target, Step(()))


def pause(current: RoutingTable, target: RoutingTable) -> Iterator[Step]:
    """Move everything in one step, while the operator's input waits (partial pause and restart)."""
    yield from _together(current, target, Step((), pause=True))


def restart(current: RoutingTable, target: RoutingTable) -> Iterator[Step]:
    """Restart the job from a checkpoint with the new table (Flink's rescale)."""
    yield from _together(current, target, Step((), restart=True))


def fluid(current: RoutingTable, target: RoutingTable, loads: Loads | None = None) -> Iterator[Step]:
    """Move one group or key per step: the least latency, the most steps (Megaphone, Hoffmann et al., VLDB 2019)."""
    for pair, pieces in _pieces(current, target, loads).items():
        for piece in pieces:
            yield Step((_move(pair, [piece]),))


def batched(current: RoutingTable, target: RoutingTable, groups_per_move: int = 1, loads: Loads | None = None) -> Iterator[Step]:
    """Move `groups_per_move` groups or keys for each of some disjoint pairs of workers in each step (Megaphone's batched).

    A worker needs as many steps as it has pieces to give and take, so pairs with the busiest workers go first. There are fewer
    than twice as many steps as the busiest worker needs, as in every greedy colouring of a graph's edges. Raises RequestError
    unless `groups_per_move` is at least 1.
    """
    if groups_per_move < 1:
        raise RequestError(f"groups_per_move is {groups_per_move}: a step moves at least 1 key group of a pair of workers")
    waiting = _pieces(current, target, loads)
    order = {pair: place for place, pair in enumerate(waiting)}
    left: Counter[int] = Counter()
    for pair, pieces in waiting.items():
        left.update(dict.fromkeys(pair, len(pieces)))
    while waiting:
        moves, used = [], set[int]()
        for pair in sorted(waiting, key=lambda pair: (-max(left[pair[0]], left[pair[1]]), order[pair])):
            if not used.isdisjoint(pair):
                continue
            used.update(pair)
            pieces, waiting[pair] = waiting[pair][:groups_per_move], waiting[pair][groups_per_move:]
            left.subtract(dict.fromkeys(pair, len(pieces)))
            moves.append(_move(pair, pieces))
        waiting = {pair: pieces for pair, pieces in waiting.items() if pieces}
        yield Step(tuple(sorted(moves, key=lambda move: (move.source, move.target))))


def lazy(current: RoutingTable, target: RoutingTable, groups_per_move: int = 1, loads: Loads | None = None) -> Iterator[Step]:
    """Move in about `LAZY_STEPS` steps, each as `batched` does; a key's state is fetched when a record needs it (Koala; Meces, ATC 2022).

    A step moves at least `groups_per_move` groups or keys of a pair of workers, and at least `LAZY_GROUPS`.
    """
    most = max((len(move.groups) + len(move.keys) for move in current.moves_to(target)), default=0)
    for step in batched(current, target, max(groups_per_move, LAZY_GROUPS, -(-most // LAZY_STEPS)), loads):
        yield replace(step, lazy=True)


STRATEGIES: dict[str, Callable[..., Iterator[Step]]] = {
    "restart": restart,
    "pause": pause,
    "sudden": sudden,
    "fluid": fluid,
    "batched": batched,
    "lazy": lazy,
}
"""The strategies by name."""


def plan_steps(
    name: str, current: RoutingTable, target: RoutingTable, groups_per_move: int = 1, loads: Loads | None = None
) -> Iterator[Step]:
    """Plan the steps of strategy `name` from `current` to `target`: none if the tables are equal. Raises RequestError for an
    unknown name.

    `groups_per_move` is for `batched` and `lazy`. `loads`: the load of each key group, in any unit, None if it isn't known.
    """
    if name not in STRATEGIES:
        raise RequestError(f"{name!r} is not a migration strategy: use one of {', '.join(STRATEGIES)}")
    return _steps(name, current, target, groups_per_move, loads)


def _steps(name: str, current: RoutingTable, target: RoutingTable, groups_per_move: int, loads: Loads | None) -> Iterator[Step]:
    kept = {key: split for key, split in target.splits.items() if _continues(current.splits.get(key), split)}
    before, after = RoutingTable(current.groups, current.keys, kept), RoutingTable(target.groups, target.keys, kept)
    kind = Step((), pause=name == "pause", restart=name == "restart")
    yield from _together(current, before, kind)
    if name in ("batched", "lazy"):
        yield from STRATEGIES[name](before, after, groups_per_move, loads)
    else:
        yield from fluid(before, after, loads) if name == "fluid" else STRATEGIES[name](before, after)
    yield from _together(after, target, kind)


def _continues(before: SplitRoute | None, after: SplitRoute) -> bool:
    """Return True if a key stays split, perhaps over other workers."""
    return before is not None and (before.home, before.dealt) == (after.home, after.dealt)


def _together(current: RoutingTable, target: RoutingTable, kind: Step) -> Iterator[Step]:
    moves = tuple(current.moves_to(target))
    if moves:
        yield Step(moves, kind.lazy, kind.pause, kind.restart)


def _pieces(current: RoutingTable, target: RoutingTable, loads: Loads | None) -> dict[Pair, list[Move]]:
    """Cut the moves into the smallest ones, of a group or a key each, by their pair of workers; those that relieve most come first."""
    pieces = {(move.source, move.target): list(_cut(move, len(current))) for move in current.moves_to(target)}
    if loads is None:
        return pieces
    of_groups, of_workers = loads, np.bincount(current.groups, loads)
    for moves in pieces.values():
        moves.sort(key=lambda move: -of_groups[move.groups[0]] if move.groups else -np.inf)
    busiest_first = sorted(pieces, key=lambda pair: -of_workers[pair[0]] if pair[0] < len(of_workers) else 0.0)
    return {pair: pieces[pair] for pair in busiest_first}


def _cut(move: Move, key_groups: int) -> Iterator[Move]:
    homes = group_of(np.array(move.staying, np.uint64), key_groups).tolist() if move.staying else ()
    staying: dict[int, list[int]] = {}
    for key, group in zip(move.staying, homes, strict=True):
        staying.setdefault(group, []).append(key)
    for group in move.groups:
        yield Move(move.source, move.target, groups=(group,), staying=tuple(staying.get(group, ())))
    for key in move.keys:
        yield Move(move.source, move.target, keys=(key,))


def _move(pair: Pair, pieces: list[Move]) -> Move:
    return Move(
        *pair,
        tuple(group for piece in pieces for group in piece.groups),
        tuple(key for piece in pieces for key in piece.keys),
        tuple(key for piece in pieces for key in piece.staying),
    )
