"""The start of a job in its checkpoint folder: it decides if it continues an unfinished run, and ensures that no other process
runs it.

Invariant: nothing is claimed before everything that can be checked is checked, and two starts never have the same term.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable

from ...engine.errors import FlowError, RequestError
from ...engine.plan.physical import Plan
from ...scheduler.protocol.manifest import Manifest
from ...scheduler.record.restoring.fitting import check_fits
from ...scheduler.record.restoring.run_claim import BEATING, ENDED, LEASE, Life, LifeSign, RunClaim, RunEnd, StartOptions, life
from ...state.errors import StateError
from ...state.store import CheckpointStore
from ..task.saved_state import SavedState
from .job_storage import plan_sources
from .this_process import runs, this_owner

_LOG = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two checks for a sign of life."""

LONG = 200
"""The most characters of positions in a line of the log."""

_STARTED: set[str] = set()
"""The starts of this process whose jobs have not ended."""


class Starting:
    """The start of the job of `plan` in the checkpoint folder `url`. `wait(seconds)` passes the time between two checks."""

    def __init__(self, url: str, plan: Plan, wish: StartOptions, *, detached: bool, wait: Callable[[float], object] | None = None) -> None:
        try:
            self._store = CheckpointStore(url)
        except StateError as error:
            raise FlowError(f"CheckpointConfig(dir=...): {error}") from error
        self._url, self._plan, self._wish, self._detached = url, plan, wish, detached
        self._wait = wait if wait is not None else threading.Event().wait

    def claim(self) -> RunClaim:
        """Claim the folder's next term, for a new run or to continue one.

        Raises RequestError if another process runs the job, or if a `required` run to continue is missing; FlowError if the saved
        state doesn't match the flow; StoreError if the folder can't be used.
        """
        self._store.check_create_only()
        while True:
            newest = next(reversed(self._store.claims()), 0)
            if newest:
                self._refuse_if_alive(RunClaim.from_bytes(newest, self._store.claim_of(newest) or b""))
            claim, manifest = self._choose(newest)
            if not self._detached:
                _STARTED.add(claim.start)  # before another thread of this process can find the claim
            try:
                self._store.claim(claim.term, claim.to_bytes())
            except FileExistsError:
                over(claim)
                continue  # another start was faster: check whose
            except BaseException:
                over(claim)
                raise
            if manifest is not None:
                _LOG.warning("%s", self._continues(manifest))
            return claim

    def release(self, claim: RunClaim) -> None:
        """Give up a claim, because the job could not be started."""
        over(claim)
        try:
            self._store.note(claim.term, ENDED, RunEnd.UNSTARTED.encode())
        except OSError as error:
            _LOG.warning("job `%s`: its failed start could not be recorded: %s", self._plan.name, error)

    def _choose(self, newest: int) -> tuple[RunClaim, Manifest | None]:
        start, me, wish = secrets.token_hex(8), this_owner(detached=self._detached), self._wish
        found = self._unfinished() if wish.resume != "never" and not wish.from_savepoint else None
        if found is None and wish.resume == "required":
            raise RequestError(
                f'job `{self._plan.name}`: there is no unfinished run in {self._url} that has a complete checkpoint, and resume="required"'
            )
        if found is not None:
            before, manifest = found
            self._refuse_lost_sources()
            try:
                check_fits(manifest, self._plan, f"its unfinished run in {self._url}", wish.allowed)
            except FlowError as error:
                raise FlowError(f'{error}; or begin a new run: resume="never"') from error
            claim = RunClaim(before.run, start, newest + 1, before.after, resumes=True, owner=me, nonce=start, allowed=wish.allowed)
            return claim, manifest
        last = SavedState(self._url, 1, RunClaim()).last
        return RunClaim(secrets.token_hex(8), start, newest + 1, last, owner=me, nonce=start), None

    def _refuse_lost_sources(self) -> None:
        """Raise FlowError for a source whose positions are meaningless in this process."""
        for name, source in plan_sources(self._plan).items():
            if source.lost_with_process is not None:
                raise FlowError(
                    f"job `{self._plan.name}` can't continue its unfinished run in {self._url}: source `{name}` has lost "
                    f'{source.lost_with_process}; or begin a new run: resume="never"'
                )

    def _unfinished(self) -> tuple[RunClaim, Manifest] | None:
        """Return the newest run here that neither finished nor was discarded, and its newest checkpoint, if it has one."""
        end, run = None, None
        for term in reversed(self._store.claims()):
            claim, sign = self._known(term)
            if sign.end is not RunEnd.UNSTARTED and claim.run:
                end, run = sign.end, claim
                break
        if end is RunEnd.DISCARDED:
            return None
        if run is None and (run := self._without_claims()) is None:
            return None
        manifest = SavedState(self._url, 1, run).continued()
        if manifest is None or (manifest.finished and (end is RunEnd.FINISHED or not run.term)):
            return None
        return run, manifest

    def _without_claims(self) -> RunClaim | None:
        """Return the run of the newest checkpoint in a folder without claims, which an earlier version wrote."""
        for number in reversed(self._store.completed()):
            try:
                return RunClaim(Manifest.from_bytes(self._store.manifest(number)).run)
            except StateError as error:
                _LOG.warning("checkpoint %d is skipped: %s", number, error)
        return None

    def _known(self, term: int) -> tuple[RunClaim, LifeSign]:
        claim = RunClaim.from_bytes(term, self._store.claim_of(term) or b"")
        return claim, LifeSign.of(self._store.noted(term, BEATING), self._store.noted(term, ENDED))

    def _refuse_if_alive(self, claim: RunClaim) -> None:
        """Raise RequestError if the owner of the newest claim is alive. Waits for a sign of life if necessary."""
        if self._wish.takeover or claim.owner is None:
            return
        me, waited, first = this_owner(), 0.0, self._known(claim.term)[1]
        found = life(claim, first, me, runs=self._runs(claim))
        if found is Life.UNKNOWN:
            job, who = self._plan.name, claim.owner
            _LOG.warning("job `%s`: waits up to %g s for a sign of life of %s, which has %s", job, LEASE, who, self._url)
        sign = first
        while found is Life.UNKNOWN and waited < LEASE:
            self._wait(LOOK)
            waited += LOOK
            sign = self._known(claim.term)[1]
            found = Life.GONE if sign.end is not None else Life.ALIVE if sign.count != first.count else Life.UNKNOWN
        if found is Life.ALIVE:
            ago = max(0.0, this_owner().since - max(sign.at, claim.owner.since))
            raise RequestError(
                f"job `{self._plan.name}` is already running: {claim.owner}; its last sign of life was {ago:.0f} s ago. Only one run "
                f"at a time uses the checkpoint folder {self._url}: stop that one, give this flow another name or folder, or take "
                "over from it: flow.run(takeover=True)"
            )

    def _runs(self, claim: RunClaim) -> bool:
        owner, me = claim.owner, this_owner()
        assert owner is not None
        if (owner.machine, owner.pid, owner.born) == (me.machine, me.pid, me.born):
            return claim.start in _STARTED
        return owner.machine != me.machine or runs(owner)

    def _continues(self, manifest: Manifest) -> str:
        """Return one line about the checkpoint that is continued."""
        sources = {stage.name for stage in self._plan.stages if stage.is_source}
        positions = {name: [repr(entry.position) for entry in entries] for name, entries in manifest.tasks.items() if name in sources}
        at = "; ".join(f"{name} at {', '.join(where)}" for name, where in positions.items())
        age = max(0.0, time.time() - manifest.created)
        shown = f" ({at})" if 0 < len(at) <= LONG else ""
        return f"job `{self._plan.name}` continues its run from checkpoint {manifest.checkpoint}, {age:.0f} s old, in {self._url}{shown}"


def over(claim: RunClaim) -> None:
    """Record that the job for which this process claimed a run has ended."""
    _STARTED.discard(claim.start)
