"""The master: which source runs where, what each task is to do, who leads.

`service` has a method for each verb; `cluster` is the state with the changes of it that the leader makes, kept by
`store`. What follows from the state is pure: `orders`, `scheduler`.
"""
