"""The master: which source runs where, what each task is to do, who leads.

`service` has a method for each verb; `cluster` is the state with the changes of it that the leader makes, kept by
`store`. `orders` computes from the state what each worker is to do, `scheduler` which of them is to do it.
"""
