"""The source's log as work: what comes next, from where, and what an open batch or an XA transaction still needs."""
