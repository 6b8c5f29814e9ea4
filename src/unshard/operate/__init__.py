"""What a human's command does to a task's records in the target: operators, structures. Called by master and by ctl."""
