"""What goes wrong between master, worker and ctl."""

from __future__ import annotations

from unshard.error_catalogue.access import ACCESS
from unshard.error_catalogue.ctl import CTL
from unshard.error_catalogue.entry import Entry

MASTER: dict[str, Entry] = {
    "CLUSTER-001": Entry(
        "no master leads at this moment",
        "try again in a few seconds; `unshard ctl list-member --master` shows who is alive, `operate-leader "
        "cancel-evict` lets one that was evicted lead again",
        retryable=True,
    ),
    "CLUSTER-002": Entry(
        "another master leads",
        "ask again: a master that follows passes requests on to the one that leads",
        retryable=True,
    ),
    "CLUSTER-087": Entry(
        "the leading master at {address} took the request and gave no answer",
        "it may have been carried out, or may still be: look with `unshard ctl query-status` before you give it again",
    ),
    "CLUSTER-094": Entry(
        "this master has written down what was asked, and leads no more: it can't tell what came of it",
        "the master that leads now carries it out: look with `unshard ctl query-status` (of a source: `operate-source "
        "show`) before you give it again",
    ),
    "CLUSTER-003": Entry(
        "the master's database can't be used",
        "look at the database that `store` of the master's file names: whether it is up, and the account may create "
        "and change tables in it; tasks go on meanwhile",
        retryable=True,
    ),
    "CLUSTER-004": Entry(
        "`store` can't be read as the address of a database",
        "write sqlite:///FILE, or mysql://USER@HOST:PORT/DATABASE with the password under `store-password`",
    ),
    "CLUSTER-005": Entry(
        "the master's tables are of version {found}, this program knows {known}",
        "a newer Unshard has been here: start that one",
    ),
    "CLUSTER-006": Entry(
        "the source already exists",
        "`unshard ctl operate-source show` lists them; `update-source` changes one",
    ),
    "CLUSTER-007": Entry(
        "task {task} already exists on this source",
        "`resume-task` lets it go on, `update-task` changes it, `stop-task` ends it",
    ),
    "CLUSTER-008": Entry(
        "there is no such source, or it isn't one of the task",
        "`unshard ctl operate-source show` lists the sources; `operate-source create FILE` makes one known",
    ),
    "CLUSTER-009": Entry(
        "task {task} runs on other sources with another file",
        "start it with the file that it runs with (`unshard ctl config task {task}`), or change that by `update-task`",
    ),
    "CLUSTER-010": Entry(
        "after {seconds} s it is {found}, not {wanted}",
        "it is on its way: `unshard ctl query-status -s {source_id}` shows it until it is there, also where its task "
        "is stopped; a batch in hand is broken off after the worker's `wait-time-on-stop`",
    ),
    "CLUSTER-011": Entry(
        "there is a worker {worker} already, at {addr}, and it is alive",
        "give this one another `name`, and an `advertise-addr` of its own",
    ),
    "CLUSTER-096": Entry(
        "there is a master {master} already, at {addr}, and it is alive",
        "give this one another `name`, and an `advertise-addr` of its own; was it moved here from that address, it "
        "takes part once the other has been silent for `leader-lease`",
        retryable=True,
    ),
    "CLUSTER-012": Entry(
        "worker {worker} can't take the source: {fault}",
        "name a free worker; `unshard ctl list-member --worker` shows them",
    ),
    "CLUSTER-013": Entry(
        "task {task} is not in Sync on this source: its copy has files on this worker",
        "move the source when the copy is done, or pause the task first",
    ),
    "CLUSTER-014": Entry(
        "tasks are on this source: {tasks}",
        "stop them first: `unshard ctl stop-task TASK -s {source_id}`",
    ),
    "CLUSTER-015": Entry(
        "source not bound: no worker serves it",
        "start a worker; `unshard ctl list-member --worker` shows which are alive and free",
        retryable=True,
    ),
    "CLUSTER-016": Entry("the request can't be carried out as it is written", "write it as the cause says"),
    "CLUSTER-017": Entry(
        "there is no task {task} on these sources",
        "`unshard ctl query-status` lists the tasks",
    ),
    "CLUSTER-018": Entry(
        "task {task} is being started by another request",
        "wait for its answer",
        retryable=True,
    ),
    "CLUSTER-019": Entry(
        "{type} {name}: {fault}",
        "`unshard ctl list-member` shows the members",
    ),
    "CLUSTER-093": Entry(
        "task {task} and task {other}, which is there already, have names that differ by case alone",
        "give it another `name`: in a target that folds names one of them would go on by the other's checkpoint",
    ),
    "CLUSTER-083": Entry(
        "somebody else has changed {what} meanwhile; nothing was done",
        "see what is there now with `unshard ctl query-status` or `config`, then give the command again",
        retryable=True,
    ),
    "CLUSTER-091": Entry(
        "the file that is kept of {what} can't be read by this version; what runs goes on as it was, nothing begins",
        "correct what the cause names and give the whole file again: `unshard ctl {command} FILE`; "
        "`unshard ctl config {what}` shows what is kept",
    ),
    "CLUSTER-092": Entry(
        "for {seconds} s the target has been at work at a statement of the source that leaves task {task}; nothing of "
        "the task is changed",
        "give the same `unshard ctl update-task` again when that statement has ended (SHOW PROCESSLIST on the target "
        "shows it by the cause's connection; KILL ends it): a source that has left already is not harmed by that",
        retryable=True,
    ),
    "CLUSTER-039": Entry(
        "the worker at {addr} does not answer",
        "see the cause; `unshard ctl list-member --worker` tells whether the master still hears it",
        retryable=True,
    ),
}

WORKER: dict[str, Entry] = {
    "CLUSTER-020": Entry(
        "this process runs Spark as {runs}; the task asks for {asked}",
        "a worker has one Spark session: give the task the same `spark:`, or run it on a worker of its own",
    ),
    "CLUSTER-021": Entry(
        "a fault in unshard itself: what the cause says was not foreseen",
        "the log has the whole trace; report it, then `unshard ctl resume-task` tries again",
    ),
    "CLUSTER-022": Entry(
        "no master answers at {addresses}",
        "start one of them, or correct `join` of the worker; it tries again by itself",
        retryable=True,
    ),
    "CLUSTER-023": Entry(
        "this worker serves no source now",
        "`unshard ctl list-member --worker` shows which worker does",
        retryable=True,
    ),
    "CLUSTER-024": Entry(
        "the master at {address} refuses the worker's beat",
        "see the cause; its address and its token have to be those of the cluster",
    ),
    "CLUSTER-097": Entry(
        "nothing is purged: it can't be told which files task {task} needs, for its order can't be read here",
        "`unshard ctl query-status {task}` tells why; mend that, or stop the task, then purge again",
        retryable=True,
    ),
    "CLUSTER-085": Entry(
        "this worker can't carry out what the master asks for: the order has what it does not know",
        "the worker is of an earlier version than the master: upgrade the worker, and it goes on by itself; or take "
        "out of the file what the cause names, by `unshard ctl update-task` or `operate-source update`",
    ),
    "CLUSTER-086": Entry(
        "no master understands this worker's beat",
        "the masters are of an earlier version than this worker: upgrade them, and it is heard by itself; or start the "
        "worker in their version meanwhile",
        retryable=True,
    ),
}

OBSERVE: dict[str, Entry] = {
    "CLUSTER-070": Entry("the log has no such level", "give one of {levels}"),
}

CLUSTER: dict[str, Entry] = {**MASTER, **WORKER, **CTL, **ACCESS, **OBSERVE}
