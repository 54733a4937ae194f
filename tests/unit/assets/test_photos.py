from __future__ import annotations

import numpy as np
from PIL import Image

from sapiens2.assets import sample_photo


def test_sample_photo__is_a_512_pixel_colour_picture():
    with Image.open(sample_photo()) as photo:
        assert (photo.size, photo.mode, photo.format) == ((512, 512), "RGB", "JPEG")
        assert np.asarray(photo).std() > 50
