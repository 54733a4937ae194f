"""Light on a place: two lamps, one of them with shadows, and light from above and below."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["lit_color"]


@wp.func
def to_linear(color: wp.vec3) -> wp.vec3:
    return wp.cw_mul(color, color)  # a gamma of 2, the nearest to sRGB that costs nothing


@wp.func
def to_srgb(value: float) -> float:
    return wp.sqrt(wp.clamp(value, 0.0, 1.0))


@wp.func
def lit_share(
    place: wp.vec3, normal: wp.vec3, nearness: wp.array2d(dtype=float), axes: wp.array(dtype=wp.vec3)
) -> float:
    """Share of the lamp's light that reaches a place: the mean of 3 x 3 looks at what the lamp sees."""
    moved = place + normal * 0.012 - axes[3]
    column = wp.dot(moved, axes[0])
    row = wp.dot(moved, axes[1])
    near = wp.dot(moved, axes[2])
    left = int(wp.floor(column + 0.5))
    top = int(wp.floor(row + 0.5))
    if left < 1 or top < 1 or left >= nearness.shape[1] - 1 or top >= nearness.shape[0] - 1:
        return 1.0
    total = wp.float32(0.0)
    for i in range(-1, 2):
        for j in range(-1, 2):
            if nearness[top + i, left + j] < near + 0.008:
                total += 1.0
    return total / 9.0


@wp.func
def lit_color(
    albedo: wp.vec3,
    place: wp.vec3,
    normal: wp.vec3,
    view: wp.vec3,
    materials: wp.array2d(dtype=float),
    row: int,
    lights: wp.array(dtype=wp.vec3),
    nearness: wp.array2d(dtype=float),
    shadow_axes: wp.array(dtype=wp.vec3),
) -> wp.vec3:
    """Colour of a place as the camera sees it; for the lights see ``Lighting.rows``."""
    wrap = materials[row, 14]
    key = wp.max(wp.dot(normal, lights[0]) + wrap, 0.0) / (1.0 + wrap)
    if key > 0.0:
        key = key * lit_share(place, normal, nearness, shadow_axes)
    fill = wp.max(wp.dot(normal, lights[2]), 0.0)
    above = 0.5 + 0.5 * wp.dot(normal, lights[4])
    light = lights[1] * key + lights[3] * fill + lights[5] * above + lights[6] * (1.0 - above)
    shine = wp.float32(0.0)
    if materials[row, 10] > 0.0 and key > 0.0:
        half = wp.dot(normal, wp.normalize(lights[0] + view))
        shine = materials[row, 10] * wp.pow(wp.max(half, 0.0), materials[row, 11])
    linear = wp.cw_mul(to_linear(albedo), light) + lights[1] * (shine * wp.min(key * 4.0, 1.0))
    return wp.vec3(to_srgb(linear[0]), to_srgb(linear[1]), to_srgb(linear[2]))
