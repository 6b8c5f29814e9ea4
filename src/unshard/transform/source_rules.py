"""The rules of one source that are decided by name, made of its config: the same for dump, load, sync and explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unshard.config.subtask import SubtaskConfig
from unshard.model.table import TableName
from unshard.transform.block_allow import BlockAllowList, Passage
from unshard.transform.column_mapping import ColumnMapper
from unshard.transform.event_filter import EventFilter
from unshard.transform.online_tables import OnlineTables
from unshard.transform.route import Router
from unshard.transform.taken import allow_list, judge_dumped, online_tables


@dataclass(frozen=True, slots=True)
class SourceRules:
    """One source's rules. Pure; callers keep answers, they don't. `dumped` is what the dump takes."""

    source: str
    online: OnlineTables
    allow: BlockAllowList
    dumped: Callable[[TableName], Passage]
    router: Router
    mapper: ColumnMapper
    events: EventFilter
    collations: Mapping[str, str]

    @classmethod
    def of(cls, config: SubtaskConfig) -> SourceRules:
        """Raises ValueError on a malformed pattern; those of a loaded task are well formed."""
        return cls(
            config.source_id,
            online_tables(config),
            allow_list(config),
            judge_dumped(config),
            Router(config.routes, config.case_sensitive),
            ColumnMapper(config.column_mappings, config.case_sensitive),
            EventFilter(config.filters, config.source.filters, config.case_sensitive),
            config.collations,
        )
