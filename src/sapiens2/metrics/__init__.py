"""Measures of the six tasks, by the names that the literature gives them.

All of them are used alike, with numpy arrays or tensors on any device::

    metric = NormalMetric(mask_description="people")
    for ...:
        metric.update(prediction, target, mask)
    metric.compute()  # {"mean_angular_error_deg": ..., ...}
    metric.notes()  # what a reader of the figures needs to know
    metric.report()  # figures, settings and notes, ready for a JSON file

Several processes each feed their own metric, send ``metric.state()`` (JSON), and one merges what
``NormalMetric.from_state(state)`` restores. The figures are the same to the last bit, however the images were spread.

What was never measured is NaN, not 0. Nothing is resized and no value is guessed: shapes that differ, class ids out of
range, pictures up to 255 and predictions that are NaN raise :class:`sapiens2.errors.InputError`.

:mod:`sapiens2.metrics.baselines` has the predictions that know nothing, to be shown beside.
"""

from sapiens2.metrics.dense_metric import DenseMetric
from sapiens2.metrics.image import ImageMetric
from sapiens2.metrics.keypoints import PckMetric, PckReference, keypoint_groups
from sapiens2.metrics.matting import MattingMetric
from sapiens2.metrics.metric import Metric
from sapiens2.metrics.normal import NormalMetric
from sapiens2.metrics.oks import OksMetric
from sapiens2.metrics.pointmap import Alignment, PointmapMetric
from sapiens2.metrics.segmentation import SegmentationMetric

__all__ = [
    "Alignment",
    "DenseMetric",
    "ImageMetric",
    "MattingMetric",
    "Metric",
    "NormalMetric",
    "OksMetric",
    "PckMetric",
    "PckReference",
    "PointmapMetric",
    "SegmentationMetric",
    "keypoint_groups",
]
