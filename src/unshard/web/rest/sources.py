"""`/api/v1/sources`: sources, and their relay logs."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict

from unshard.api.verbs import OperateSource, PurgeRelay, StartRelay, StopRelay, StopTask, TransferSource, UpdateSource
from unshard.config.access import Role
from unshard.master.orders import source_config
from unshard.master.service import Master
from unshard.master.state import known
from unshard.mysql.connection import rows, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import IS_TABLE
from unshard.web.answers import done, listed, readable
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute
from unshard.web.rest.source_form import Source, from_config, to_text

_OWN = frozenset({"information_schema", "performance_schema", "mysql", "sys"})


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class CreateSource(_Body):
    """A source to add; `worker_name` binds it to that worker."""

    source: Source
    worker_name: str = ""


class ChangeSource(_Body):
    """A source with new settings."""

    source: Source


class MoveSource(_Body):
    """The worker to which a source is moved."""

    worker_name: str


class RelayWish(_Body):
    """The settings with which the relay of a source is to run. Only the worker that serves the source may be named."""

    worker_name_list: list[str] = []
    relay_binlog_name: str | None = None
    relay_binlog_gtid: str | None = None
    relay_dir: str | None = None


class Purging(_Body):
    """The relay files to delete: those before `relay_binlog_name`."""

    relay_binlog_name: str
    relay_dir: str = ""


def source_routes(master: Master) -> APIRouter:
    """Return the routes of DM's REST for sources."""
    router = APIRouter(prefix="/api/v1/sources", tags=["source"], route_class=LeaderRoute)

    def shown(name: str, *, with_status: bool) -> dict[str, Any]:
        state = master.cluster.state
        known(state, name)
        tasks = [row.task for row in state.of_source(name)]
        form = from_config(source_config(state.sources[name])) | {"task_name_list": tasks}
        return form | {"status_list": [status_of(name)]} if with_status else form

    def status_of(name: str) -> dict[str, Any]:
        known(master.cluster.state, name)
        report = master.statuses.reports([name], None, asks=True)[name].source_status
        errors = report.result.errors if report.result is not None else ()
        relay = report.relay_status.model_dump(mode="json") if report.relay_status is not None else None
        told = {"error_msg": "; ".join(error.message for error in errors)} if errors else {}
        return {"source_name": name, "worker_name": report.worker, "relay_status": relay} | told

    @router.post("", status_code=status.HTTP_201_CREATED)
    @needs(Role.OPERATOR)
    def create_source(body: CreateSource) -> dict[str, Any]:
        """Make a source known, and bind it to a worker."""
        request = OperateSource(op="create", config=(to_text(body.source),), worker=body.worker_name)
        done(master.operate_source(request))
        return shown(body.source.source_name, with_status=False)

    @router.get("")
    @needs(Role.VIEWER)
    def list_sources(with_status: bool = False, enable_relay: bool | None = None) -> dict[str, Any]:
        """List all sources."""
        names = master.cluster.state.sources
        forms = [readable(partial(shown, name, with_status=with_status), {"source_name": name}) for name in names]
        return listed(one for one in forms if enable_relay in (None, one.get("relay_config", {}).get("enable_relay")))

    @router.get("/{source_name}")
    @needs(Role.VIEWER)
    def get_source(source_name: str, with_status: bool = False) -> dict[str, Any]:
        """Return one source."""
        return shown(source_name, with_status=with_status)

    @router.put("/{source_name}")
    @needs(Role.OPERATOR)
    def change_source(source_name: str, body: ChangeSource) -> dict[str, Any]:
        """Change a source; what a task that runs can't have changed is refused."""
        state = master.cluster.state
        known(state, source_name)
        new = body.source.model_copy(update={"source_name": source_name})
        done(master.update_source(UpdateSource(config=to_text(new, source_config(state.sources[source_name])))))
        return shown(source_name, with_status=False)

    @router.delete("/{source_name}", status_code=status.HTTP_204_NO_CONTENT)
    @needs(Role.OPERATOR)
    def delete_source(source_name: str, force: bool = False) -> None:
        """Let a source go; `force`: its tasks on it too."""
        if force and master.cluster.state.of_source(source_name):
            done(master.stop_task(StopTask(sources=(source_name,))))
        done(master.operate_source(OperateSource(op="stop", source_id=(source_name,))))

    @router.get("/{source_name}/status")
    @needs(Role.VIEWER)
    def source_status(source_name: str) -> dict[str, Any]:
        """Return the source's worker and its relay."""
        return listed([status_of(source_name)])

    @router.post("/{source_name}/enable")
    @needs(Role.OPERATOR)
    def enable_source(source_name: str) -> None:
        """Let the source's tasks run."""
        done(master.sources.enable(source_name, enabled=True))

    @router.post("/{source_name}/disable")
    @needs(Role.OPERATOR)
    def disable_source(source_name: str) -> None:
        """Stop all of the source's tasks until it is enabled."""
        done(master.sources.enable(source_name, enabled=False))

    @router.post("/{source_name}/transfer")
    @needs(Role.OPERATOR)
    def transfer_source(source_name: str, body: MoveSource) -> None:
        """Move the source to another worker."""
        done(master.transfer_source(TransferSource(source=source_name, worker=body.worker_name)))

    @router.post("/{source_name}/relay/enable")
    @needs(Role.OPERATOR)
    def enable_relay(source_name: str, body: RelayWish | None = None) -> None:
        """Keep a relay log also while no task needs it."""
        workers = tuple(body.worker_name_list) if body is not None else ()
        done(master.start_relay(StartRelay(sources=(source_name,), workers=workers)))

    @router.post("/{source_name}/relay/disable")
    @needs(Role.OPERATOR)
    def disable_relay(source_name: str, body: RelayWish | None = None) -> None:
        """Keep a relay log only while a task needs it."""
        workers = tuple(body.worker_name_list) if body is not None else ()
        done(master.stop_relay(StopRelay(sources=(source_name,), workers=workers)))

    @router.post("/{source_name}/relay/purge")
    @needs(Role.OPERATOR)
    def purge_relay(source_name: str, body: Purging) -> None:
        """Delete relay files before the one named."""
        wish = PurgeRelay(sources=(source_name,), filename=body.relay_binlog_name, sub_dir=body.relay_dir)
        done(master.purge_relay(wish))

    def names(source_name: str, statement: str, *values: str) -> list[str]:
        state = master.cluster.state
        known(state, source_name)
        endpoint = to_endpoint(source_config(state.sources[source_name]).database)
        with session(endpoint, "source") as connection:
            return [str(name) for (name,) in rows(connection, statement, values)]

    @router.get("/{source_name}/schemas")
    @needs(Role.VIEWER)
    def schemas(source_name: str) -> list[str]:
        """List the schemas of the server."""
        return [name for name in names(source_name, "SHOW DATABASES") if name.lower() not in _OWN]

    @router.get("/{source_name}/schemas/{schema_name}")
    @needs(Role.VIEWER)
    def tables(source_name: str, schema_name: str) -> list[str]:
        """List the tables of a schema of the server."""
        asked = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND {IS_TABLE}"
        return names(source_name, asked + " ORDER BY TABLE_NAME", schema_name)

    return router
