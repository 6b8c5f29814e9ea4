"""What Unshard tells of itself to Prometheus: every metric once, as data, with its graphs and alerts.

Nothing is counted on the way of the rows: whoever is asked for `/metrics` reads what the units keep anyway
(`worker.metrics`, `master.metrics`) and gives samples; the few counts that nobody keeps are in `events`.
"""

from unshard.metrics.registry import METRICS
from unshard.metrics.sample import CONTENT_TYPE, Distribution, Histogram, Sample, exposition

__all__ = ["CONTENT_TYPE", "METRICS", "Distribution", "Histogram", "Sample", "exposition"]
