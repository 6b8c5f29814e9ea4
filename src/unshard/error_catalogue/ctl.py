"""What goes wrong at `unshard ctl`, between it and the masters."""

from __future__ import annotations

from unshard.error_catalogue.entry import Entry

CTL: dict[str, Entry] = {
    "CLUSTER-040": Entry(
        "no master is known that {verb} could be put to",
        "give --master-addr HOST:PORT, or set UNSHARD_MASTER_ADDR or DM_MASTER_ADDR; `unshard run` is found from the "
        "folder of its log, which is the one that it was started in unless --log says otherwise",
    ),
    "CLUSTER-041": Entry(
        "no master can be reached at {masters}",
        "look whether the masters run and whether --master-addr is right. A master with TLS hangs up on those who come "
        "without --ssl-ca, one that asks for client certificates without --ssl-cert and --ssl-key too. A cluster that "
        "has just lost its leader has another within seconds: try again",
        retryable=True,
    ),
    "CLUSTER-098": Entry(
        "{verb} has no run to ask: none lives in this folder",
        "if an error ended it, do what that says; then give the same `unshard run` command again: it goes on from where"
        " it was. `unshard status TASK.yaml -s SOURCE.yaml` shows how far that is",
    ),
    "CLUSTER-042": Entry(
        "what answers at {master} is no master of this version: {status}",
        "look at --master-addr: is it a worker's address, a proxy's, or a master of another version?",
    ),
    "CLUSTER-043": Entry(
        "the master at {master} does not let us do that",
        "give the token of a role that may: --token-file FILE, or set UNSHARD_TOKEN; a master that asks for client "
        "certificates needs --ssl-cert and --ssl-key",
    ),
    "CLUSTER-045": Entry(
        "the master at {master} took {verb} and gave no answer within {seconds} s",
        "it may still be carried out: look with query-status before you give the command again; --rpc-timeout waits "
        "longer",
    ),
    "CLUSTER-046": Entry(
        "{folder} is no folder that `config export` wrote",
        "give the folder that holds tasks/ and sources/ with -d",
    ),
    "CLUSTER-047": Entry("the command can't be meant so", "see `unshard ctl VERB --help`"),
}
