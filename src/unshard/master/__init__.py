"""The master: which source runs where, what each task is to do, who leads."""
