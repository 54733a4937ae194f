"""Keypoints to heatmaps and back."""

from sapiens2.codecs.udp_heatmap import average_flipped, decode_heatmaps, encode_heatmaps

__all__ = ["average_flipped", "decode_heatmaps", "encode_heatmaps"]
