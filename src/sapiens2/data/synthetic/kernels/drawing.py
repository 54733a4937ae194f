"""The depth buffer, on one thread: triangles are drawn in their order."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["draw_triangles"]


@wp.func
def hashed(value: int) -> float:
    state = wp.uint32(value) * wp.uint32(747796405) + wp.uint32(1403630843)
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * wp.uint32(277803737)
    return float((word >> wp.uint32(22)) ^ word) / 4294967296.0


@wp.func
def strand_noise(coordinate: float) -> float:
    """-1..1: strands of two widths, each with a length of its own."""
    coarse = wp.floor(coordinate)
    fine = wp.floor(coordinate * 3.7)
    return hashed(int(coarse)) + hashed(int(fine) + 7919) - 1.0


@wp.kernel
def draw_triangles(
    points: wp.array(dtype=wp.vec3),
    cuts: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    two_sided: wp.array(dtype=int),
    perspective: int,
    inverse_depth: wp.array2d(dtype=float),
    triangle_at: wp.array2d(dtype=int),
):
    """Keep the nearest triangle of each sample; what is cut away lets others through."""
    rows = inverse_depth.shape[0]
    columns = inverse_depth.shape[1]
    for index in range(triangles.shape[0]):
        corners = triangles[index]
        a = points[corners[0]]
        b = points[corners[1]]
        c = points[corners[2]]
        if a[2] <= 0.0 or b[2] <= 0.0 or c[2] <= 0.0:
            continue
        left = wp.max(int(wp.ceil(wp.min(a[0], wp.min(b[0], c[0])))), 0)
        right = wp.min(int(wp.floor(wp.max(a[0], wp.max(b[0], c[0])))), columns - 1)
        top = wp.max(int(wp.ceil(wp.min(a[1], wp.min(b[1], c[1])))), 0)
        bottom = wp.min(int(wp.floor(wp.max(a[1], wp.max(b[1], c[1])))), rows - 1)
        if left > right or top > bottom:
            continue
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if area == 0.0 or (area > 0.0 and two_sided[index] == 0):
            continue
        cut_a = cuts[corners[0]]
        cut_b = cuts[corners[1]]
        cut_c = cuts[corners[2]]
        lowest = wp.min(cut_a[0] - cut_a[1], wp.min(cut_b[0] - cut_b[1], cut_c[0] - cut_c[1]))
        if wp.max(cut_a[0] + cut_a[1], wp.max(cut_b[0] + cut_b[1], cut_c[0] + cut_c[1])) <= 0.0:
            continue
        scale = 1.0 / area
        step_b = -(c[1] - a[1]) * scale
        step_c = (b[1] - a[1]) * scale
        for row in range(top, bottom + 1):
            y = float(row) - a[1]
            x = float(left) - a[0]
            share_b = (x * (c[1] - a[1]) - y * (c[0] - a[0])) * scale
            share_c = (y * (b[0] - a[0]) - x * (b[1] - a[1])) * scale
            for column in range(left, right + 1):
                share_a = 1.0 - share_b - share_c
                if share_a >= 0.0 and share_b >= 0.0 and share_c >= 0.0:
                    near = share_a * a[2] + share_b * b[2] + share_c * c[2]
                    if near > inverse_depth[row, column]:
                        visible = wp.bool(True)
                        if lowest <= 0.0:
                            weight_a = share_a
                            weight_b = share_b
                            weight_c = share_c
                            if perspective == 1:
                                weight_a = share_a * a[2] / near
                                weight_b = share_b * b[2] / near
                                weight_c = share_c * c[2] / near
                            own = weight_a * cut_a + weight_b * cut_b + weight_c * cut_c
                            value = own[0]
                            if own[1] > 0.0:
                                value += own[1] * strand_noise(own[2])
                            visible = value > 0.0
                        if visible:
                            inverse_depth[row, column] = near
                            triangle_at[row, column] = index
                share_b -= step_b
                share_c -= step_c
