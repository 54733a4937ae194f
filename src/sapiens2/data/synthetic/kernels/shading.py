"""Samples to pixels: the mean of what they show, and the truth at the centre."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.kernels.coloring import material_color
from sapiens2.data.synthetic.kernels.lighting import lit_color
from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["shade_pixels"]

SHADES = wp.constant(2)
"""How many samples of a person's material are shaded in a pixel; the others take the last one's colour."""

NUM_CLASSES, NUM_PEOPLE = wp.constant(29), wp.constant(8)
ClassCounts = wp.types.vector(length=29, dtype=int)
PersonCounts = wp.types.vector(length=8, dtype=int)


@wp.func
def corner_shares(screen: wp.array(dtype=wp.vec3), corners: wp.vec3i, column: int, row: int, near: float) -> wp.vec4:
    """Shares of the corners at a sample, with perspective; last the sign: above 0 the inside is seen."""
    a = screen[corners[0]]
    b = screen[corners[1]]
    c = screen[corners[2]]
    scale = 1.0 / ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
    x = float(column) - a[0]
    y = float(row) - a[1]
    share_b = (x * (c[1] - a[1]) - y * (c[0] - a[0])) * scale
    share_c = (y * (b[0] - a[0]) - x * (b[1] - a[1])) * scale
    share_a = 1.0 - share_b - share_c
    return wp.vec4(share_a * a[2] / near, share_b * b[2] / near, share_c * c[2] / near, scale)


@wp.func
def blended(values: wp.array(dtype=wp.vec3), corners: wp.vec3i, shares: wp.vec4) -> wp.vec3:
    return shares[0] * values[corners[0]] + shares[1] * values[corners[1]] + shares[2] * values[corners[2]]


@wp.func
def facing(normal: wp.vec3, view: wp.vec3, side: float) -> wp.vec3:
    """The unit normal on the side that is seen; interpolated ones may turn away at a silhouette, and are bent back."""
    turned = wp.normalize(normal)
    if side > 0.0:
        turned = -turned
    towards = wp.dot(turned, view)
    if towards < 0.02:
        turned = wp.normalize(turned + (0.02 - towards) * view)
    return turned


@wp.func
def majority(counts: ClassCounts, unseen: int) -> int:
    """The class with most samples; 0 when more show no person."""
    most = wp.int32(unseen)
    label = wp.int32(0)
    for candidate in range(1, NUM_CLASSES):
        if counts[candidate] > most or (counts[candidate] == most and most > 0 and label == 0):
            most = counts[candidate]
            label = candidate
    return label


@wp.func
def owner_of(counts: PersonCounts) -> int:
    """The person with most samples."""
    most = wp.int32(0)
    owner = wp.int32(0)
    for candidate in range(1, NUM_PEOPLE):
        if counts[candidate] > most:
            most = counts[candidate]
            owner = candidate
    return owner


@wp.kernel
def shade_pixels(
    screen: wp.array(dtype=wp.vec3),
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    patterns: wp.array(dtype=wp.vec3),
    tints: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    per_triangle: wp.array(dtype=wp.vec3i),
    inverse_depth: wp.array2d(dtype=float),
    triangle_at: wp.array2d(dtype=int),
    materials: wp.array2d(dtype=float),
    lights: wp.array(dtype=wp.vec3),
    nearness: wp.array2d(dtype=float),
    shadow_axes: wp.array(dtype=wp.vec3),
    backdrop: wp.array2d(dtype=wp.vec3),
    samples: int,
    foreground: wp.array2d(dtype=wp.vec3),
    background: wp.array2d(dtype=wp.vec3),
    albedo: wp.array2d(dtype=wp.vec3),
    normal_map: wp.array2d(dtype=wp.vec3),
    alpha: wp.array2d(dtype=float),
    depth: wp.array2d(dtype=float),
    label_map: wp.array2d(dtype=int),
    person_map: wp.array2d(dtype=int),
):
    """One pixel: colour and coverage of all its samples, labels by majority, depth and normal nearest the centre."""
    row, column = wp.tid()
    total = samples * samples
    middle = (samples - 1) / 2
    people = wp.int32(0)
    others = wp.int32(0)
    people_color = wp.vec3(0.0, 0.0, 0.0)
    people_albedo = wp.vec3(0.0, 0.0, 0.0)
    others_color = wp.vec3(0.0, 0.0, 0.0)
    last = wp.int32(-2)
    last_material = wp.int32(-2)
    shaded = wp.int32(0)
    color = wp.vec3(0.0, 0.0, 0.0)
    own_albedo = wp.vec3(0.0, 0.0, 0.0)
    best_distance = wp.int32(1000000)
    best_normal = wp.vec3(0.0, 0.0, 0.0)
    best_depth = wp.float32(0.0)
    counts = ClassCounts()
    owners = PersonCounts()
    stride = wp.int32(2)
    if samples == 5:
        stride = 7
    here = wp.int32(total / 2)  # the centre first, then all others in an order that spreads them
    for _ in range(total):
        i = here / samples
        j = here - i * samples
        here = (here + stride) % total
        sample_row = row * samples + i
        sample_column = column * samples + j
        index = triangle_at[sample_row, sample_column]
        if index < 0:
            continue
        kind = per_triangle[index]
        distance = (i - middle) * (i - middle) + (j - middle) * (j - middle)
        is_person = kind[2] > 0
        wanted = is_person and distance < best_distance
        fresh = kind[0] != last_material or (index != last and shaded < SHADES and is_person)
        if fresh or wanted:
            corners = triangles[index]
            near = inverse_depth[sample_row, sample_column]
            shares = corner_shares(screen, corners, sample_column, sample_row, near)
            place = blended(points, corners, shares)
            view = -wp.normalize(place)
            normal = facing(blended(normals, corners, shares), view, shares[3])
            if fresh:
                tint = blended(tints, corners, shares)
                own_albedo = material_color(materials, kind[0], blended(patterns, corners, shares), tint)
                color = lit_color(own_albedo, place, normal, view, materials, kind[0], lights, nearness, shadow_axes)
                last = index
                last_material = kind[0]
                shaded += 1
            if wanted:
                best_distance = distance
                best_normal = normal
                best_depth = 1.0 / near
        if is_person:
            people += 1
            people_color += color
            people_albedo += own_albedo
            counts[kind[1]] = counts[kind[1]] + 1
            owners[wp.min(kind[2], 7)] = owners[wp.min(kind[2], 7)] + 1
        else:
            others += 1
            others_color += color
    share = 1.0 / float(total)
    unseen = total - people
    alpha[row, column] = float(people) * share
    foreground[row, column] = people_color * share
    background[row, column] = backdrop[row, column]
    if unseen > 0:
        background[row, column] = (others_color + backdrop[row, column] * float(unseen - others)) / float(unseen)
    if people > 0:
        albedo[row, column] = people_albedo / float(people)
    label = majority(counts, unseen)
    label_map[row, column] = label
    if label > 0:
        normal_map[row, column] = best_normal
        depth[row, column] = best_depth
        person_map[row, column] = owner_of(owners)
