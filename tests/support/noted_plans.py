"""The plans of the batches that a sync unit runs, noted while it runs them."""

from __future__ import annotations

from threading import Event

from support.waiting import PATIENCE_SECONDS
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.sync.unit import SyncUnit


def noted_plans(sync: SyncUnit, let_go: Event | None = None) -> list[BatchPlan]:
    """The plans of the unit's batches from here on, as they are run: with `let_go` the first one when that is set."""
    plans: list[BatchPlan] = []
    run = sync.run_batch

    def noted(plan: BatchPlan) -> list[LedgerReport]:
        plans.append(plan)
        assert let_go is None or let_go.wait(PATIENCE_SECONDS)
        return run(plan)

    sync.run_batch = noted
    return plans
