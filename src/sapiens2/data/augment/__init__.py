"""Augmentation: one geometric transform carried through every map at once, changes of colour, and the recipes."""

from sapiens2.data.augment.acceptance import Acceptance, UnusableSampleError, valid_pixels
from sapiens2.data.augment.affine import Affine
from sapiens2.data.augment.background import BackgroundSwap, transfer_colours
from sapiens2.data.augment.chance import Compose, KeepTruth, Randomly, Transform
from sapiens2.data.augment.geometric import (
    Fit,
    Letterbox,
    RandomAspectCrop,
    RandomFit,
    RandomFlip,
    RandomPartCrop,
    RandomRotation,
    RandomScale,
)
from sapiens2.data.augment.mirror import NO_PARTNER, Mirror, flip_pairs_by_name, mirror_partners
from sapiens2.data.augment.people import HalfBody, PersonWindow, SelectPerson, half_body_indices, only_person
from sapiens2.data.augment.photometric import (
    BoxBlur,
    CoarseDropout,
    DownUpSample,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    PhotometricDistortion,
    Solarize,
    recolour,
)
from sapiens2.data.augment.recipes import Recipe, evaluation_recipe, training_recipe
from sapiens2.data.augment.sampling import Filter, SourceGrid
from sapiens2.data.augment.warp import GeometricStep, Warp, warp_sample

__all__ = [
    "NO_PARTNER",
    "Acceptance",
    "Affine",
    "BackgroundSwap",
    "BoxBlur",
    "CoarseDropout",
    "Compose",
    "DownUpSample",
    "Filter",
    "Fit",
    "GaussianBlur",
    "GaussianNoise",
    "GeometricStep",
    "HalfBody",
    "KeepTruth",
    "Letterbox",
    "MedianBlur",
    "Mirror",
    "PersonWindow",
    "PhotometricDistortion",
    "RandomAspectCrop",
    "RandomFit",
    "RandomFlip",
    "RandomPartCrop",
    "RandomRotation",
    "RandomScale",
    "Randomly",
    "Recipe",
    "SelectPerson",
    "Solarize",
    "SourceGrid",
    "Transform",
    "UnusableSampleError",
    "Warp",
    "evaluation_recipe",
    "flip_pairs_by_name",
    "half_body_indices",
    "mirror_partners",
    "only_person",
    "recolour",
    "training_recipe",
    "transfer_colours",
    "valid_pixels",
    "warp_sample",
]
