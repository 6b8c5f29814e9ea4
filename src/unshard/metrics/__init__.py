"""The metrics that Unshard offers to Prometheus: each is defined once, with its graphs and alerts.

Nothing is counted on the path of the rows. A request for `/metrics` reads state that the units have anyway
(`worker.metrics`, `master.service`) and returns samples.

| module | contents |
|---|---|
| `metric` | the definition of a metric, of its graphs and alerts, as values |
| `of_tasks` | tasks: states, errors, waiting times |
| `of_units` | dump and load, sharding DDL, continuous validation |
| `of_relay` | relays |
| `of_sync` | sync: lag, position, rows, batches |
| `of_process` | masters, and each process itself |
| `events` | counters of events: errors, repeated attempts, waiting |
| `sample` | samples, and Prometheus' text format |
| `registry` | all metrics by name; alert rules |
| `dashboard` | the Grafana dashboard |
| `elsewhere` | metrics of DM that are elsewhere, or have no meaning |
"""
