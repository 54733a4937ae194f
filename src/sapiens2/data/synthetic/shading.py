"""Samples to pixels: what each sample shows, lit, and the truth of every pixel.

Light and colour are computed linearly and kept in sRGB, in which pictures are mixed; so
``image = foreground + (1 - alpha) * background`` holds for the files as they are.

Convention: OpenCV camera, x right, y down, z forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapiens2.data.synthetic.materials import MaterialTable
from sapiens2.data.synthetic.noise import smooth_noise
from sapiens2.data.synthetic.rasteriser import Buffers
from sapiens2.data.synthetic.warp_runtime import array, launch, to_numpy, wp, zeros

__all__ = ["IRIS_RADIUS", "PUPIL_RADIUS", "Lighting", "PixelTruth", "Surface", "shade"]

@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of everything in a scene, in the frame of the camera.

    Attributes:
        points: ``(V, 3)`` float32 metres.
        normals: ``(V, 3)`` float32 unit vectors, outwards.
        pattern: ``(V, 3)`` float32 metres: where each vertex lies in the rest pose, for patterns.
        tint: ``(V, 3)`` float32 sRGB that the material's colour is multiplied by.
        cut: ``(V,)`` float32, drawn where above 0.
        fray: ``(V,)`` float32 how much strands change the cut.
        strand: ``(V,)`` float32 coordinate across strands.
        triangles: ``(T, 3)`` int32.
        material: ``(T,)`` int32 row of the material table.
        label: ``(T,)`` int32 body-part class.
        person: ``(T,)`` int32, 0 for what is no person, else from 1.
        two_sided: ``(T,)`` int32.
    """

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    pattern: NDArray[np.float32]
    tint: NDArray[np.float32]
    cut: NDArray[np.float32]
    fray: NDArray[np.float32]
    strand: NDArray[np.float32]
    triangles: NDArray[np.int32]
    material: NDArray[np.int32]
    label: NDArray[np.int32]
    person: NDArray[np.int32]
    two_sided: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Lighting:
    """One lamp that casts shadows, one that fills, and light from all around.

    Attributes:
        key_direction: ``(3,)`` unit vector towards the lamp, camera frame.
        key_color: ``(3,)`` linear RGB.
        fill_direction: ``(3,)`` towards the second lamp.
        fill_color: ``(3,)`` linear RGB.
        up: ``(3,)`` unit vector away from the ground.
        sky_color: ``(3,)`` linear RGB from above.
        ground_color: ``(3,)`` linear RGB from below.
    """

    key_direction: NDArray[np.float32]
    key_color: NDArray[np.float32]
    fill_direction: NDArray[np.float32]
    fill_color: NDArray[np.float32]
    up: NDArray[np.float32]
    sky_color: NDArray[np.float32]
    ground_color: NDArray[np.float32]

    def rows(self) -> NDArray[np.float32]:
        """All vectors, ``(7, 3)``, in the order of the fields."""
        return np.stack(
            [
                self.key_direction,
                self.key_color,
                self.fill_direction,
                self.fill_color,
                self.up,
                self.sky_color,
                self.ground_color,
            ]
        ).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ShadowMap:
    """What the lamp sees: ``nearness`` over a square, and the ``(4, 3)`` axes and origin that lead to its columns."""

    nearness: object
    axes: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PixelTruth:
    """The truth of every pixel; maps have zeros where no person is.

    Attributes:
        foreground: ``(H, W, 3)`` sRGB premultiplied by alpha.
        background: ``(H, W, 3)`` sRGB of all that is no person.
        alpha: ``(H, W)`` share of the samples that show people.
        albedo: ``(H, W, 3)`` sRGB.
        normals: ``(H, W, 3)`` unit vectors.
        depth: ``(H, W)`` z in metres.
        label: ``(H, W)`` int32 class.
        person: ``(H, W)`` int32, 0: none.
    """

    foreground: NDArray[np.float32]
    background: NDArray[np.float32]
    alpha: NDArray[np.float32]
    albedo: NDArray[np.float32]
    normals: NDArray[np.float32]
    depth: NDArray[np.float32]
    label: NDArray[np.int32]
    person: NDArray[np.int32]


def shade(
    surface: Surface,
    samples: int,
    points: NDArray[np.float32],
    buffers: Buffers,
    materials: MaterialTable,
    lighting: Lighting,
    shadow: ShadowMap,
    backdrop: NDArray[np.float32],
    intrinsics: NDArray[np.float64],
) -> PixelTruth:
    """Shade what the rasteriser found.

    Args:
        surface: The triangles.
        samples: Samples per pixel along an axis.
        points: What :func:`rasterise` was given.
        buffers: What it found.
        materials: The materials.
        lighting: The lights.
        shadow: What the first lamp sees.
        backdrop: ``(H, W, 3)`` sRGB where nothing is hit.
        intrinsics: ``(3, 3)``.
    """
    height, width = backdrop.shape[:2]
    colors = [zeros((height, width), wp.vec3) for _ in range(4)]
    scalars = [zeros((height, width), float) for _ in range(2)]
    ids = [zeros((height, width), int) for _ in range(2)]
    per_triangle = np.stack([surface.material, surface.label, surface.person], axis=1).astype(np.int32)
    camera = wp.vec4(*(float(intrinsics[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2))))
    launch(
        shade_pixels,
        (height, width),
        *(array(own, wp.vec3) for own in (points, surface.points, surface.normals, surface.pattern, surface.tint)),
        array(surface.triangles, wp.vec3i),
        array(per_triangle, wp.vec3i),
        buffers.inverse_depth,
        buffers.triangle,
        array(materials.rows, float),
        array(lighting.rows(), wp.vec3),
        shadow.nearness,
        array(shadow.axes, wp.vec3),
        array(backdrop.astype(np.float32), wp.vec3),
        camera,
        samples,
        *colors,
        *scalars,
        *ids,
    )
    foreground, background, albedo, normals = (to_numpy(own) for own in colors)
    alpha, depth = (to_numpy(own) for own in scalars)
    label, person = (to_numpy(own) for own in ids)
    return PixelTruth(foreground, background, alpha, albedo, normals, depth, label, person)


IRIS_RADIUS, PUPIL_RADIUS = 0.385, 0.16
"""Share of the eyeball's radius."""

IRIS, PUPIL = wp.constant(IRIS_RADIUS), wp.constant(PUPIL_RADIUS)

SHADES = wp.constant(3)
"""How many samples of a material are shaded in a pixel; the others take the last one's colour."""


@wp.func
def soft_step(value: float, width: float) -> float:
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
def to_linear(color: wp.vec3) -> wp.vec3:
    return wp.vec3(wp.pow(color[0], 2.2), wp.pow(color[1], 2.2), wp.pow(color[2], 2.2))


@wp.func
def to_srgb(value: float) -> float:
    return wp.pow(wp.clamp(value, 0.0, 1.0), 0.4545)


@wp.func
def material_color(rows: wp.array2d(dtype=float), row: int, place: wp.vec3, tint: wp.vec3) -> wp.vec3:
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
    camera: wp.vec4,
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
    row, column = wp.tid()
    total = samples * samples
    middle = (samples - 1) / 2
    empty = wp.vec3(0.0, 0.0, 0.0)
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
    counts = wp.vector(length=29, dtype=int)
    owners = wp.vector(length=8, dtype=int)
    stride = wp.int32(2)
    if samples == 5:
        stride = 7
    place_in_pixel = int(total / 2)  # the centre first, then all others in an order that spreads them
    for _ in range(total):
        here = place_in_pixel
        place_in_pixel = (place_in_pixel + stride) % total
        i = here / samples
        j = here - i * samples
        sample_row = row * samples + i
        sample_column = column * samples + j
        index = triangle_at[sample_row, sample_column]
        if index < 0:
            continue
        corners = triangles[index]
        kind = per_triangle[index]
        distance = (i - middle) * (i - middle) + (j - middle) * (j - middle)
        wanted = kind[2] > 0 and distance < best_distance
        fresh = kind[0] != last_material or (index != last and shaded < SHADES)
        if fresh or wanted:
            a = screen[corners[0]]
            b = screen[corners[1]]
            c = screen[corners[2]]
            scale = 1.0 / ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
            x = float(sample_column) - a[0]
            y = float(sample_row) - a[1]
            share_b = (x * (c[1] - a[1]) - y * (c[0] - a[0])) * scale
            share_c = (y * (b[0] - a[0]) - x * (b[1] - a[1])) * scale
            near = inverse_depth[sample_row, sample_column]
            share_a = (1.0 - share_b - share_c) * a[2] / near
            share_b = share_b * b[2] / near
            share_c = share_c * c[2] / near
            place = share_a * points[corners[0]] + share_b * points[corners[1]] + share_c * points[corners[2]]
            normal = wp.normalize(
                share_a * normals[corners[0]] + share_b * normals[corners[1]] + share_c * normals[corners[2]]
            )
            view = -wp.normalize(place)
            facing = wp.dot(normal, view)
            if scale > 0.0:  # the inside of something that is open
                normal = -normal
                facing = -facing
            if facing < 0.02:  # interpolated normals may turn away at a silhouette
                normal = wp.normalize(normal + (0.02 - facing) * view)
            if fresh:
                pattern = (
                    share_a * patterns[corners[0]] + share_b * patterns[corners[1]] + share_c * patterns[corners[2]]
                )
                tint = share_a * tints[corners[0]] + share_b * tints[corners[1]] + share_c * tints[corners[2]]
                own_albedo = material_color(materials, kind[0], pattern, tint)
                wrap = materials[kind[0], 14]
                key = wp.max(wp.dot(normal, lights[0]) + wrap, 0.0) / (1.0 + wrap)
                if key > 0.0:
                    key = key * lit_share(place, normal, nearness, shadow_axes)
                fill = wp.max(wp.dot(normal, lights[2]), 0.0)
                above = 0.5 + 0.5 * wp.dot(normal, lights[4])
                light = lights[1] * key + lights[3] * fill + lights[5] * above + lights[6] * (1.0 - above)
                shine = materials[kind[0], 10] * wp.pow(
                    wp.max(wp.dot(normal, wp.normalize(lights[0] + view)), 0.0), materials[kind[0], 11]
                )
                linear = wp.cw_mul(to_linear(own_albedo), light) + lights[1] * (shine * wp.min(key * 4.0, 1.0))
                color = wp.vec3(to_srgb(linear[0]), to_srgb(linear[1]), to_srgb(linear[2]))
                last = index
                last_material = kind[0]
                shaded += 1
            if wanted:
                best_distance = distance
                best_normal = normal
                best_depth = 1.0 / near
        if kind[2] > 0:
            people += 1
            people_color += color
            people_albedo += own_albedo
            counts[kind[1]] = counts[kind[1]] + 1
            owners[wp.min(kind[2], 7)] = owners[wp.min(kind[2], 7)] + 1
        else:
            others += 1
            others_color += color
    share = 1.0 / float(total)
    alpha[row, column] = float(people) * share
    foreground[row, column] = people_color * share
    unseen = total - people
    if unseen > 0:
        behind = backdrop[row, column] * float(unseen - others)
        background[row, column] = (others_color + behind) / float(unseen)
    else:
        background[row, column] = backdrop[row, column]
    if people > 0:
        albedo[row, column] = people_albedo / float(people)
    most = wp.int32(unseen)
    label = wp.int32(0)
    for candidate in range(1, 29):
        if counts[candidate] > most or (counts[candidate] == most and most > 0 and label == 0):
            most = counts[candidate]
            label = candidate
    label_map[row, column] = label
    if label > 0:
        normal_map[row, column] = best_normal
        depth[row, column] = best_depth
        owner = wp.int32(0)
        most = wp.int32(0)
        for candidate in range(1, 8):
            if owners[candidate] > most:
                most = owners[candidate]
                owner = candidate
        person_map[row, column] = owner
