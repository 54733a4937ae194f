"""People made here: pictures with exact truth for every task.

Making them needs the extra ``synth``; importing this package does not.
"""

from sapiens2.data.synthetic.series import PictureSeries
from sapiens2.data.synthetic.synthetic_sample import (
    FRAMING_NAMES,
    MAX_PEOPLE,
    SyntheticSample,
    render,
    render_frame,
)

__all__ = ["FRAMING_NAMES", "MAX_PEOPLE", "PictureSeries", "SyntheticSample", "render", "render_frame"]
