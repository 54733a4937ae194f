"""Value noise from hashed integers."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["cell_hash", "smooth_noise", "sum_octaves"]


@wp.func
def cell_hash(x: int, y: int, z: int) -> float:
    """A number in 0..1 for a cell."""
    state = wp.uint32(x) * wp.uint32(73856093) ^ wp.uint32(y) * wp.uint32(19349663) ^ wp.uint32(z) * wp.uint32(83492791)
    state = state * wp.uint32(747796405) + wp.uint32(1403630843)
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * wp.uint32(277803737)
    return float((word >> wp.uint32(22)) ^ word) / 4294967296.0


@wp.func
def smooth_noise(place: wp.vec3) -> float:
    """Value noise, 0..1, with cells of size 1."""
    x = int(wp.floor(place[0]))
    y = int(wp.floor(place[1]))
    z = int(wp.floor(place[2]))
    u = place[0] - wp.floor(place[0])
    v = place[1] - wp.floor(place[1])
    w = place[2] - wp.floor(place[2])
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    w = w * w * (3.0 - 2.0 * w)
    low = wp.lerp(
        wp.lerp(cell_hash(x, y, z), cell_hash(x + 1, y, z), u),
        wp.lerp(cell_hash(x, y + 1, z), cell_hash(x + 1, y + 1, z), u),
        v,
    )
    high = wp.lerp(
        wp.lerp(cell_hash(x, y, z + 1), cell_hash(x + 1, y, z + 1), u),
        wp.lerp(cell_hash(x, y + 1, z + 1), cell_hash(x + 1, y + 1, z + 1), u),
        v,
    )
    return wp.lerp(low, high, w)


@wp.kernel
def sum_octaves(points: wp.array(dtype=wp.vec3), offset: wp.vec3, octaves: int, values: wp.array(dtype=float)):
    """Noise of several sizes."""
    index = wp.tid()
    total = wp.float32(0.0)
    strength = wp.float32(1.0)
    sum_of_strengths = wp.float32(0.0)
    size = wp.float32(1.0)
    for _ in range(octaves):
        total += strength * (2.0 * smooth_noise(points[index] * size + offset * size) - 1.0)
        sum_of_strengths += strength
        strength = strength * 0.5
        size = size * 2.0
    values[index] = 1.4 * total / sum_of_strengths
