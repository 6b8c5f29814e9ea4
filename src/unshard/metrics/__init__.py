"""The metrics that Unshard offers to Prometheus: each is defined once, as data, with its graphs and alerts.

Nothing is counted on the path of the rows. A request for `/metrics` reads state that the units keep anyway
(`worker.metrics`, `master.service`) and returns samples. The few counts that no unit keeps are in `events`.
"""

from unshard.metrics.registry import METRICS
from unshard.metrics.sample import CONTENT_TYPE, Distribution, Histogram, Sample, exposition

__all__ = ["CONTENT_TYPE", "METRICS", "Distribution", "Histogram", "Sample", "exposition"]
