"""The pending operators of one source: each new batch is opened by those that the target has at that moment.

A user may give or take back an operator while the source runs. To see that costs no query: the transaction that opens a
batch compares the target's pending operators with those by which the batch was planned (`target.receipts.open_batch`).
If they differ, they are read again, and the batch is planned again. A batch without a plan in the target, with
at-least-once delivery, reads them before it is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unshard.errors import UnshardError
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.checkpoint.progress import SyncProgress
from unshard.target.operators import Operator, settle

Used = dict[int, str]
"""The operators that a batch settles when it is closed, by number, each with its note."""
Planned = Callable[[Sequence[Operator]], tuple[BatchPlan, Used]]
"""Plans a batch without what these operators exclude."""


@dataclass(slots=True)
class PendingOperators:
    """The pending operators of one source, in the order of the log. Used by the sync unit's thread.

    `known` are those that were read last.
    """

    progress: SyncProgress
    known: tuple[Operator, ...] = ()

    @property
    def numbers(self) -> list[int]:
        """The numbers of `known`."""
        return [one.number for one in self.known]

    def read(self) -> bool:
        """Read the pending operators again. Return whether they are others than before."""
        before, self.known = self.known, self.progress.store.operators()
        return self.known != before

    def renew(self) -> bool:
        """Read the pending operators again, and settle those that are passed. Return whether they have changed."""
        changed = self.read()
        if changed:
            self.give_up_passed()
        return changed

    def give_up_passed(self) -> None:
        """Settle the operators for positions before the checkpoint as missed: they were passed without them."""
        store, log = self.progress.store, logger("sync", source=self.progress.source)
        at = self._first()
        missed = [one for one in self.known if one.position < at and one.number not in store.used]
        for one in missed:
            log.warning("an operator's place is passed", op=str(one.op), position=str(one.position), checkpoint=str(at))
        if missed:
            numbers = [one.number for one in missed]
            last = store.epoch, store.batch_id, "the place was passed without it"
            store.in_one(lambda cursor: settle(cursor, store.meta, store.source, numbers, "missed", *last))
            self.known = tuple(one for one in self.known if one not in missed)

    def opened(
        self, planned: Planned, begin: Location, end: Location, form: Callable[[BatchPlan], dict[str, Any]]
    ) -> BatchPlan:
        """Return the next batch, planned by the operators that are pending when it is opened in the target.

        `form` returns what is stored of a plan. Raises what `planned` raises, if it does so by the operators that are
        pending now.
        """
        store = self.progress.store
        while True:
            plan, used = self._planned(planned)
            if store.open(begin, end, form(plan), plan.shape.partitions, self.numbers):
                store.used |= used
                return plan
            self.renew()

    def unrecorded(self, planned: Planned) -> BatchPlan:
        """Return the next batch, which has no plan in the target, by the operators that are pending now."""
        self.renew()
        plan, used = planned(self.known)
        self.progress.store.used |= used
        return replace(plan, receipts=False)

    def _planned(self, planned: Planned) -> tuple[BatchPlan, Used]:
        try:
            return planned(self.known)
        except UnshardError:
            if not self.renew():
                raise
        return self._planned(planned)

    def _first(self) -> Position:
        """Return where the changes begin that are still to be read."""
        return (self.progress.store.held or self.progress.saved).position
