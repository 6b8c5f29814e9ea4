"""What goes wrong at `unshard ctl`, between it and the masters."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

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
