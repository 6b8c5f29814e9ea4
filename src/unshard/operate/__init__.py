"""Commands of users on a task's records in the target: operators, structures, locks, resets.

Called by the master and by ctl.
"""
