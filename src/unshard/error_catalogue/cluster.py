"""Errors of a cluster's processes: ctl, master and worker.

The first are about where a process is called, who calls and how much is asked; then those at `unshard ctl`, between it
and the masters; and those between master, worker and ctl.
"""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

ACCESS: dict[str, CatalogueEntry] = {
    "CLUSTER-050": CatalogueEntry(
        "{address} can be reached from other machines, but no access control is configured",
        "set token-file, or ssl-ca with ssl-cert and ssl-key, or listen on 127.0.0.1; "
        "docs/how-to/secure-a-cluster.md shows both",
    ),
    "CLUSTER-051": CatalogueEntry(
        "cannot listen on {address}", "write HOST:PORT of this machine with a free port; port 0 takes any"
    ),
    "CLUSTER-052": CatalogueEntry(
        "the TLS files cannot be used: {files}",
        "name readable PEM files: an authority, a certificate and the key that belongs to it",
    ),
    "CLUSTER-084": CatalogueEntry(
        "the HTTP server at {address} has stopped, so this process ends too",
        "see the cause and the log; start it again, as its systemd unit does by itself",
    ),
    "CLUSTER-053": CatalogueEntry(
        "the request carries no valid token",
        "send `Authorization: Bearer TOKEN` with a token of the token-file, or with ctl: --token-file FILE",
    ),
    "CLUSTER-095": CatalogueEntry(
        "{place} does not hold a token: a token is one word",
        "write there what the output of `unshard ctl token` has after `token:`, and nothing else",
    ),
    "CLUSTER-054": CatalogueEntry(
        "{caller} has the role {role}; this needs {needed}", "use a token with that role, or have the role changed"
    ),
    "CLUSTER-055": CatalogueEntry(
        "the body of the request is longer than {limit} bytes", "send less, or raise max-request-bytes"
    ),
    "CLUSTER-056": CatalogueEntry("the body of the request did not arrive within {seconds} s", "send it again", True),
    "CLUSTER-057": CatalogueEntry(
        "the request took longer than {seconds} s; it may still be carried out",
        "run `query-status` to see whether it was; `request-timeout` sets the limit",
    ),
    "CLUSTER-058": CatalogueEntry(
        "the audit log {file} cannot be written, so nothing is changed",
        "make room and make it writable for the user that unshard runs as",
    ),
    "CLUSTER-059": CatalogueEntry(
        "the request is not understood",
        "correct what the cause names; if that is correct, this process is older than the program that sent it: "
        "upgrade it",
    ),
    "CLUSTER-060": CatalogueEntry(
        "the request was sent by a web page of another site, and is refused", "call with unshard ctl or with a token"
    ),
}


CTL: dict[str, CatalogueEntry] = {
    "CLUSTER-040": CatalogueEntry(
        "{verb} needs a master, and none is known",
        "give --master-addr HOST:PORT, or set UNSHARD_MASTER_ADDR or DM_MASTER_ADDR; `unshard run` is found from the "
        "folder of its log: the one that it was started in, unless --log names another",
    ),
    "CLUSTER-041": CatalogueEntry(
        "no master can be reached at {masters}",
        "check that the masters run and that --master-addr is right. A master with TLS hangs up on clients without "
        "--ssl-ca; one that asks for client certificates, also on those without --ssl-cert and --ssl-key. A cluster "
        "that "
        "has just lost its leader has another within seconds: try again",
        retryable=True,
    ),
    "CLUSTER-098": CatalogueEntry(
        "{verb} finds no `unshard run` that is running in this folder",
        "if an error ended it, do what that says; then give the same `unshard run` command again: it goes on from where"
        " it was. `unshard status TASK.yaml -s SOURCE.yaml` shows how far that is",
    ),
    "CLUSTER-042": CatalogueEntry(
        "the server at {master} is not a master of this version: {status}",
        "look at --master-addr: is it a worker's address, a proxy's, or a master of another version?",
    ),
    "CLUSTER-043": CatalogueEntry(
        "the master at {master} refuses this command",
        "give a token with the role that it needs: --token-file FILE, or set UNSHARD_TOKEN; a master that asks for "
        "client "
        "certificates needs --ssl-cert and --ssl-key",
    ),
    "CLUSTER-045": CatalogueEntry(
        "the master at {master} accepted {verb} but gave no answer within {seconds} s",
        "it may still be carried out: check with `query-status` before you repeat the command; --rpc-timeout makes "
        "ctl wait longer",
    ),
    "CLUSTER-046": CatalogueEntry(
        "{folder} was not written by `config export`",
        "give the folder that holds tasks/ and sources/ with -d",
    ),
    "CLUSTER-047": CatalogueEntry("the command is not valid", "see `unshard ctl VERB --help`"),
}


MASTER: dict[str, CatalogueEntry] = {
    "CLUSTER-001": CatalogueEntry(
        "the cluster has no leading master at this moment",
        "try again in a few seconds; `unshard ctl list-member --master` shows who is alive, `operate-leader "
        "cancel-evict` lets one that was evicted lead again",
        retryable=True,
    ),
    "CLUSTER-002": CatalogueEntry(
        "another master leads",
        "ask again: a master that follows passes requests on to the one that leads",
        retryable=True,
    ),
    "CLUSTER-087": CatalogueEntry(
        "the leading master at {address} accepted the request but gave no answer",
        "it may have been carried out, or may still be: check with `unshard ctl query-status` before you repeat it",
    ),
    "CLUSTER-094": CatalogueEntry(
        "this master has stored the request but is no longer the leader, so it does not know the result",
        "the new leader carries it out: check with `unshard ctl query-status` (for a source: `operate-source show`) "
        "before you repeat it",
    ),
    "CLUSTER-100": CatalogueEntry(
        "this master is no longer the leader, or can't find out, so it has stopped the command before its next step in"
        " the target",
        "check with `unshard ctl query-status`: if the task is not there or stands, repeat the command, which completes"
        " it; steps that were done before stay done",
    ),
    "CLUSTER-003": CatalogueEntry(
        "the master's database can't be used",
        "check the database that `store` of the master's file names: is it up, and may the account create and change "
        "tables in it? Running tasks go on meanwhile",
        retryable=True,
    ),
    "CLUSTER-004": CatalogueEntry(
        "`store` can't be read as the address of a database",
        "write sqlite:///FILE, or mysql://USER@HOST:PORT/DATABASE with the password under `store-password`",
    ),
    "CLUSTER-005": CatalogueEntry(
        "the master's tables are of version {found}, this program knows {known}",
        "a newer version of Unshard has used this store: start that version",
    ),
    "CLUSTER-006": CatalogueEntry(
        "the source already exists",
        "`unshard ctl operate-source show` lists them; `update-source` changes one",
    ),
    "CLUSTER-007": CatalogueEntry(
        "task {task} already exists on this source",
        "`resume-task` lets it go on, `update-task` changes it, `stop-task` ends it",
    ),
    "CLUSTER-008": CatalogueEntry(
        "there is no such source, or it isn't one of the task",
        "`unshard ctl operate-source show` lists the sources; `operate-source create FILE` makes one known",
    ),
    "CLUSTER-009": CatalogueEntry(
        "task {task} runs on other sources with another file",
        "start it with the file that it runs with (`unshard ctl config task {task}`), or change that by `update-task`",
    ),
    "CLUSTER-010": CatalogueEntry(
        "after {seconds} s the state is {found}, not {wanted}",
        "the change is in progress: `unshard ctl query-status -s {source_id}` shows the state, also of a stopped "
        "task; a "
        "batch that is being applied is cancelled after the worker's `wait-time-on-stop`",
    ),
    "CLUSTER-011": CatalogueEntry(
        "a worker {worker} is already running at {addr}",
        "give this one another `name`, and an `advertise-addr` of its own",
    ),
    "CLUSTER-096": CatalogueEntry(
        "a master {master} is already running at {addr}",
        "give this one another `name`, and an `advertise-addr` of its own; if it has moved here from that address, "
        "it joins once the other has been silent for `leader-lease`",
        retryable=True,
    ),
    "CLUSTER-012": CatalogueEntry(
        "worker {worker} can't take the source: {fault}",
        "name a free worker; `unshard ctl list-member --worker` shows them",
    ),
    "CLUSTER-013": CatalogueEntry(
        "task {task} is not in Sync on this source: the files of its copy are on this worker",
        "move the source when the copy is done, or pause the task first",
    ),
    "CLUSTER-014": CatalogueEntry(
        "the source still has tasks: {tasks}",
        "stop them first: `unshard ctl stop-task TASK -s {source_id}`",
    ),
    "CLUSTER-015": CatalogueEntry(
        "source not bound: no worker serves it",
        "start a worker; `unshard ctl list-member --worker` shows which are alive and free",
        retryable=True,
    ),
    "CLUSTER-099": CatalogueEntry(
        "the leader has just changed, and {workers} has not reported to it yet",
        "try again in {seconds} s: by then it has reported, or counts as lost and its source goes to another worker",
        retryable=True,
    ),
    "CLUSTER-016": CatalogueEntry("the request can't be carried out as it is written", "correct it as the cause says"),
    "CLUSTER-017": CatalogueEntry(
        "there is no task {task} on these sources",
        "`unshard ctl query-status` lists the tasks",
    ),
    "CLUSTER-018": CatalogueEntry(
        "task {task} is being started by another request",
        "wait for its answer",
        retryable=True,
    ),
    "CLUSTER-019": CatalogueEntry(
        "{type} {name}: {fault}",
        "`unshard ctl list-member` shows the members",
    ),
    "CLUSTER-093": CatalogueEntry(
        "the names of task {task} and of the existing task {other} differ only in case",
        "give it another `name`: on a target that ignores the case of table names one would use the other's checkpoint",
    ),
    "CLUSTER-083": CatalogueEntry(
        "somebody else has changed {what} in the meantime; nothing was done",
        "check the present state with `unshard ctl query-status` or `config`, then repeat the command",
        retryable=True,
    ),
    "CLUSTER-091": CatalogueEntry(
        "this version can't read the stored file of {what}; what runs goes on, but nothing new starts",
        "correct what the cause names and send the whole file again: `unshard ctl {command} FILE`; "
        "`unshard ctl config {what}` shows the stored file",
    ),
    "CLUSTER-092": CatalogueEntry(
        "for {seconds} s the target has been running a statement of the source that leaves task {task}; the task is "
        "unchanged",
        "repeat the `unshard ctl update-task` when that statement has ended (SHOW PROCESSLIST on the target shows it "
        "under the connection that the cause names; KILL ends it): a source that has left already is not affected",
        retryable=True,
    ),
    "CLUSTER-039": CatalogueEntry(
        "the worker at {addr} does not answer",
        "see the cause; `unshard ctl list-member --worker` shows whether the master still receives its heartbeats",
        retryable=True,
    ),
}

WORKER: dict[str, CatalogueEntry] = {
    "CLUSTER-020": CatalogueEntry(
        "this process runs Spark as {runs}; the task asks for {asked}",
        "a worker has one Spark session: give the task the same `spark:`, or run it on a worker of its own",
    ),
    "CLUSTER-021": CatalogueEntry(
        "an internal error of Unshard, which the cause describes",
        "report it with the stack trace in the log; `unshard ctl resume-task` tries again",
    ),
    "CLUSTER-022": CatalogueEntry(
        "no master answers at {addresses}",
        "start one of them, or correct `join` of the worker; it tries again by itself",
        retryable=True,
    ),
    "CLUSTER-023": CatalogueEntry(
        "this worker serves no source now",
        "`unshard ctl list-member --worker` shows which worker does",
        retryable=True,
    ),
    "CLUSTER-024": CatalogueEntry(
        "the master at {address} refuses the worker's heartbeat",
        "see the cause; the worker needs the address and the token of the cluster",
    ),
    "CLUSTER-097": CatalogueEntry(
        "nothing is purged: this worker can't read the order of task {task}, so it does not know which files it needs",
        "`unshard ctl query-status {task}` tells why; correct that, or stop the task, then purge again",
        retryable=True,
    ),
    "CLUSTER-085": CatalogueEntry(
        "this worker can't carry out the master's order: the order holds something that it does not know",
        "the worker is of an earlier version than the master: upgrade the worker, and it goes on by itself; or take "
        "out of the file what the cause names, by `unshard ctl update-task` or `operate-source update`",
    ),
    "CLUSTER-086": CatalogueEntry(
        "no master understands this worker's heartbeat",
        "the masters are of an earlier version than this worker: upgrade them, and it is heard by itself; or start the "
        "worker in their version meanwhile",
        retryable=True,
    ),
}

OBSERVE: dict[str, CatalogueEntry] = {
    "CLUSTER-070": CatalogueEntry("the log has no such level", "give one of {levels}"),
}

CLUSTER: dict[str, CatalogueEntry] = {**MASTER, **WORKER, **CTL, **ACCESS, **OBSERVE}
