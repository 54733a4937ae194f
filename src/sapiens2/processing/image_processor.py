"""The image processor: pictures to model input, model output to results."""

# No `from __future__ import annotations`: transformers reads the annotations of the TypedDict as types.

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from huggingface_hub.dataclasses import validate_typed_dict
from huggingface_hub.errors import StrictDataclassError
from transformers.image_processing_base import BatchFeature
from transformers.image_processing_outputs import SemanticSegmentationPostProcessorOutput
from transformers.image_processing_utils import BaseImageProcessor
from transformers.image_utils import PILImageResampling
from transformers.processing_utils import ImagesKwargs, Unpack

from sapiens2.errors import ConfigurationError, InputError
from sapiens2.geometry.boxes import as_boxes_per_image
from sapiens2.processing.albedo import post_process_albedo_estimation
from sapiens2.processing.backgrounds import BackgroundsLike
from sapiens2.processing.batches import as_requested, check_targets, keypoint_batch, label_batch, pixel_batch
from sapiens2.processing.image_input import list_images
from sapiens2.processing.matting import post_process_image_matting
from sapiens2.processing.model_outputs import output_maps
from sapiens2.processing.normal import post_process_normal_estimation
from sapiens2.processing.options import PreprocessOptions, checked_values
from sapiens2.processing.pixels import read_pixels
from sapiens2.processing.pointmap import post_process_pointmap_estimation
from sapiens2.processing.pose import post_process_pose_estimation
from sapiens2.processing.segmentation import post_process_semantic_segmentation
from sapiens2.processing.sizes import SizesLike, as_sizes
from sapiens2.types import ImageLike

__all__ = ["Sapiens2ImageProcessor", "Sapiens2ImageProcessorKwargs"]

_FLOAT_SETTINGS = ("rescale_factor", "keypoint_heatmap_sigma")


class Sapiens2ImageProcessorKwargs(ImagesKwargs, total=False):  # type: ignore[call-arg]
    """Settings of :class:`Sapiens2ImageProcessor`, beyond those of every image processor.

    Attributes:
        do_reduce_labels: Whether class 0 of segmentation maps becomes 255 and the others move down by one.
        keypoint_heatmap_downscale_factor: Pixels of the model's input per heatmap pixel.
        keypoint_heatmap_sigma: Standard deviation of the heatmaps' Gaussians, in heatmap pixels.
    """

    do_reduce_labels: bool | None
    keypoint_heatmap_downscale_factor: int | None
    keypoint_heatmap_sigma: float | None


class Sapiens2ImageProcessor(BaseImageProcessor):
    """Prepares pictures for the Sapiens2 models, and turns what the models return into results.

    Settings and defaults, and the file that :meth:`save_pretrained` writes, are those of transformers' class of the
    same name. Every setting can be overridden in a call. Nothing is kept between calls, so threads can share one.

    Accepts what :func:`~sapiens2.processing.image_input.load_image` accepts; that page has the rules for orientation,
    transparency, 16-bit and float images. Float images within 0..1 are recognised and not rescaled twice.

    Args:
        **kwargs: ``do_resize`` (True), ``size`` (height 1024, width 768), ``resample`` (bilinear), ``do_pad`` (False:
            stretch; True: keep the aspect and pad with zeros), ``do_center_crop`` (False), ``crop_size`` (224 x 224),
            ``do_rescale`` (True), ``rescale_factor`` (1/255), ``do_normalize`` (True), ``image_mean`` and
            ``image_std`` (ImageNet), ``do_reduce_labels`` (False), ``keypoint_heatmap_downscale_factor`` (4),
            ``keypoint_heatmap_sigma`` (6.0), and unset by default: ``do_convert_rgb`` (False refuses what is not RGB),
            ``default_to_square``, ``pad_size`` (for ``do_pad`` without ``do_resize``), ``input_data_format``,
            ``data_format`` (channels first only), ``device``, ``return_tensors``. ``disable_grouping`` and
            ``image_seq_length`` are accepted for compatibility and have no effect.

    Raises:
        ConfigurationError: A size has no valid form, or a number is not finite or out of range.
    """

    valid_kwargs = Sapiens2ImageProcessorKwargs
    model_input_names = ["pixel_values"]  # noqa: RUF012 (transformers' class attribute, read only)

    do_resize = True
    size = {"height": 1024, "width": 768}  # noqa: RUF012
    default_to_square = True
    resample = PILImageResampling.BILINEAR
    do_pad = False
    do_center_crop = False
    crop_size = {"height": 224, "width": 224}  # noqa: RUF012
    do_rescale = True
    rescale_factor = 1 / 255
    do_normalize = True
    image_mean = (0.485, 0.456, 0.406)
    image_std = (0.229, 0.224, 0.225)
    do_reduce_labels = False
    keypoint_heatmap_downscale_factor = 4
    keypoint_heatmap_sigma = 6.0

    def __init__(self, **kwargs: Unpack[Sapiens2ImageProcessorKwargs]) -> None:
        super().__init__(**kwargs)
        try:
            self._set_attributes(**kwargs)
            own = {name: getattr(self, name, None) for name in self._valid_kwargs_names}
            checked_values({name: getattr(type(self), name, None) if v is None else v for name, v in own.items()})
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"Image processor: {error}") from error

    def preprocess(
        self,
        images: ImageLike | Sequence[Any],
        segmentation_maps: ImageLike | Sequence[Any] | None = None,
        boxes: Any = None,
        keypoints: Any = None,
        **kwargs: Unpack[Sapiens2ImageProcessorKwargs],
    ) -> BatchFeature:
        """Prepare pictures, or the people in them, for a model.

        Convention: boxes are COCO ``(x_min, y_min, width, height)`` in absolute pixels of the displayed image.

        Args:
            images: One image, a list of images, or a batch array; sizes may differ.
            segmentation_maps: One map of class ids for each image.
            boxes: One list of boxes ``(N_i, 4)`` for each image. Each person is cropped by the UDP affine to ``size``
                instead of resizing the whole image; ``do_pad`` has no effect then. ``[]`` means nobody.
            keypoints: For each image and each of its boxes, ``K`` times ``(x, y, visibility)``.
            **kwargs: Any setting of the class, for this call only; ``None`` means the processor's own.

        Returns:
            ``pixel_values`` ``(N, 3, H, W)`` float32, with one entry per image or, with boxes, per person in order;
            uint8 if neither rescaled nor normalised. With segmentation maps ``labels`` ``(N, H, W)`` int64, 255 where
            there is no label. With keypoints ``labels`` ``(N, K, h, w)`` float32 and ``label_weights`` ``(N, K)``.

        Raises:
            InputError: An input cannot be used, or counts or settings contradict each other.
        """
        options = self._options(kwargs)
        check_targets(segmentation_maps, boxes, keypoints, options)
        pixels = [read_pixels(image, options) for image in list_images(images)]
        people = None if boxes is None else as_boxes_per_image(boxes, len(pixels))
        data = {"pixel_values": pixel_batch(pixels, people, options)}
        if segmentation_maps is not None:
            data["labels"] = label_batch(segmentation_maps, pixels, people, options)
        if keypoints is not None and people is not None:
            data["labels"], data["label_weights"] = keypoint_batch(keypoints, pixels, people, options)
        return BatchFeature({name: as_requested(entries, name, options) for name, entries in data.items()})

    def post_process_semantic_segmentation(
        self,
        outputs: Any,
        target_sizes: SizesLike | None = None,
        return_segmentation_scores: bool = False,
        source_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> list[torch.Tensor] | list[SemanticSegmentationPostProcessorOutput]:
        """See :func:`~sapiens2.processing.segmentation.post_process_semantic_segmentation`."""
        self._warn_of_missing_padding(source_sizes, do_remove_padding)
        return post_process_semantic_segmentation(
            outputs,
            target_sizes,
            return_segmentation_scores,
            source_sizes=source_sizes,
            do_remove_padding=do_remove_padding,
        )

    def post_process_normal_estimation(
        self,
        outputs: Any,
        source_sizes: SizesLike | None = None,
        target_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> list[dict[str, torch.Tensor]]:
        """See :func:`~sapiens2.processing.normal.post_process_normal_estimation`."""
        self._warn_of_missing_padding(source_sizes, do_remove_padding)
        return post_process_normal_estimation(outputs, source_sizes, target_sizes, do_remove_padding)

    def post_process_pointmap_estimation(
        self,
        outputs: Any,
        source_sizes: SizesLike | None = None,
        target_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> list[dict[str, Any]]:
        """See :func:`~sapiens2.processing.pointmap.post_process_pointmap_estimation`."""
        self._warn_of_missing_padding(source_sizes, do_remove_padding)
        return post_process_pointmap_estimation(outputs, source_sizes, target_sizes, do_remove_padding)

    def post_process_albedo_estimation(
        self,
        outputs: Any,
        source_sizes: SizesLike | None = None,
        target_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> list[dict[str, torch.Tensor]]:
        """See :func:`~sapiens2.processing.albedo.post_process_albedo_estimation`."""
        self._warn_of_missing_padding(source_sizes, do_remove_padding)
        return post_process_albedo_estimation(outputs, source_sizes, target_sizes, do_remove_padding)

    def post_process_image_matting(
        self,
        outputs: Any,
        target_sizes: SizesLike | None = None,
        backgrounds: BackgroundsLike | None = None,
        source_sizes: SizesLike | None = None,
        do_remove_padding: bool | None = None,
    ) -> list[dict[str, torch.Tensor | None]]:
        """See :func:`~sapiens2.processing.matting.post_process_image_matting`."""
        self._warn_of_missing_padding(source_sizes, do_remove_padding)
        return post_process_image_matting(
            outputs, target_sizes, backgrounds, source_sizes=source_sizes, do_remove_padding=do_remove_padding
        )

    def post_process_pose_estimation(
        self,
        outputs: Any,
        boxes: Any,
        outputs_flipped: Any = None,
        kernel_size: int = 11,
        threshold: float | None = None,
        source_sizes: SizesLike | None = None,
        target_sizes: SizesLike | None = None,
    ) -> list[list[dict[str, torch.Tensor]]]:
        """Decode ``heatmaps`` of the model's output, averaged with those of the mirrored crops if they are given.

        See :func:`~sapiens2.processing.pose.post_process_pose_estimation` for the arguments and results; the sizes can
        be the images themselves.
        """
        per_image = as_boxes_per_image(boxes)
        return post_process_pose_estimation(
            output_maps(outputs, "heatmaps"),
            per_image,
            heatmaps_flipped=None if outputs_flipped is None else output_maps(outputs_flipped, "heatmaps"),
            kernel_size=kernel_size,
            threshold=threshold,
            source_sizes=as_sizes(source_sizes, len(per_image), "source_sizes"),
            target_sizes=as_sizes(target_sizes, len(per_image), "target_sizes"),
        )

    def _options(self, overrides: dict[str, Any]) -> PreprocessOptions:
        """Merge the settings of a call with the processor's own, and check them."""
        given = {name: value for name, value in overrides.items() if value is not None}
        given.update({name: float(given[name]) for name in _FLOAT_SETTINGS if isinstance(given.get(name), int)})
        unknown = sorted(given.keys() - self.valid_kwargs.__annotations__.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__} has no settings {unknown}; it knows {self._valid_kwargs_names}.")
        try:
            validate_typed_dict(self.valid_kwargs, given)
            merged = {name: given.get(name, getattr(self, name, None)) for name in self._valid_kwargs_names}
            settings = self._standardize_kwargs(**merged)
        except (StrictDataclassError, ValueError) as error:
            raise InputError(str(error)) from error
        layout = settings["data_format"]
        if layout is not None and str(getattr(layout, "value", layout)) != "channels_first":
            raise InputError(f"data_format is {layout!r}; the models take 'channels_first' only.")
        return PreprocessOptions.from_settings(settings)

    def _warn_of_missing_padding(self, source_sizes: SizesLike | None, do_remove_padding: bool | None) -> None:
        """Warn where padding would be cut away by default that this processor does not add."""
        if source_sizes is not None and do_remove_padding is None and not self.do_pad:
            warnings.warn(
                "source_sizes without do_remove_padding cuts padding away, but this processor stretches images "
                "(do_pad=False), so there is none. Pass do_remove_padding=False with target_sizes; or, if the images "
                "were preprocessed with do_pad=True, pass do_remove_padding=True.",
                UserWarning,
                stacklevel=3,
            )
