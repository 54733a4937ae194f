"""Albedo: materials and their patterns."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.kernels.noise import smooth_noise
from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["IRIS_RADIUS", "PUPIL_RADIUS", "material_color"]

IRIS_RADIUS, PUPIL_RADIUS = 0.42, 0.17
"""Share of the eyeball's radius."""

IRIS, PUPIL = wp.constant(IRIS_RADIUS), wp.constant(PUPIL_RADIUS)


@wp.func
def soft_step(value: float, width: float) -> float:
    """0 to 1 around zero, over a width."""
    return wp.clamp(0.5 + value / width, 0.0, 1.0)


@wp.func
def pattern_share(kind: int, place: wp.vec3, frequency: float, seed: float) -> float:
    """How much of the second colour a place has, 0..1."""
    p = place * frequency
    if kind == 1:  # stripes around
        return soft_step(wp.sin(6.2832 * p[2] + seed), 0.2)
    if kind == 2:  # stripes along
        return soft_step(wp.sin(6.2832 * p[0] + seed), 0.2)
    if kind == 3:  # checks
        return 0.5 * soft_step(wp.sin(6.2832 * p[2] + seed), 0.2) + 0.5 * soft_step(wp.sin(6.2832 * p[0] + seed), 0.2)
    if kind == 4:  # dots
        x = p[0] - wp.floor(p[0]) - 0.5
        z = p[2] - wp.floor(p[2]) - 0.5
        return soft_step(0.09 - x * x - z * z, 0.06)
    if kind == 5:  # blotches
        return soft_step(smooth_noise(p + wp.vec3(seed, seed, seed)) - 0.5, 0.1)
    if kind == 6:  # woven: threads along both axes
        return 0.5 + 0.25 * wp.sin(6.2832 * 9.0 * p[0]) + 0.25 * wp.sin(6.2832 * 9.0 * p[2])
    if kind == 7:  # one half and the other
        return soft_step(p[2] - seed, 0.02)
    if kind == 8:  # a print on the chest
        x = (place[0] - 0.01 * wp.sin(seed * 7.0)) / 0.09
        z = (place[2] - 0.38) / 0.08
        inside = soft_step(1.0 - x * x - z * z, 0.1)
        return inside * soft_step(smooth_noise(place * frequency * 6.0 + wp.vec3(seed, 0.0, 0.0)) - 0.45, 0.1)
    return 0.0


@wp.func
def material_color(rows: wp.array2d(dtype=float), row: int, place: wp.vec3, tint: wp.vec3) -> wp.vec3:
    """Albedo (sRGB) of a material, a row of the table, at a place of its pattern."""
    first = wp.vec3(rows[row, 1], rows[row, 2], rows[row, 3])
    second = wp.vec3(rows[row, 4], rows[row, 5], rows[row, 6])
    share = pattern_share(int(rows[row, 7]), place, rows[row, 8], rows[row, 9])
    if rows[row, 0] == 1.0:  # an eye: white, iris with a dark rim, pupil
        radius = place[0]
        share = soft_step(IRIS - radius, 0.03) * (1.0 - 0.6 * soft_step(radius - IRIS + 0.05, 0.05))
        if radius < PUPIL:
            return wp.vec3(0.02, 0.02, 0.02)
    color = first * (1.0 - share) + second * share
    mottle = rows[row, 12]
    if mottle > 0.0:
        scale = rows[row, 13]
        noise = smooth_noise(place * scale) + 0.5 * smooth_noise(place * (2.7 * scale)) - 0.75
        color = color * (1.0 + mottle * noise)
    color = wp.cw_mul(color, tint)
    return wp.vec3(wp.clamp(color[0], 0.0, 1.0), wp.clamp(color[1], 0.0, 1.0), wp.clamp(color[2], 0.0, 1.0))
