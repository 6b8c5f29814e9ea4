"""The client of a master: dmctl's verbs over the API, one at a time or at a prompt."""
