"""Vertices: skinning, smoothing, normals."""

# mypy: ignore-errors
# Warp compiles these functions from their source; its annotations are types of its own.

from sapiens2.data.synthetic.warp_runtime import wp

__all__ = ["average_neighbours", "normalise", "skin_vertices", "sum_normals"]


@wp.kernel
def skin_vertices(
    rest: wp.array(dtype=wp.vec3),
    rotations: wp.array(dtype=wp.mat33),
    offsets: wp.array(dtype=wp.vec3),
    slots: wp.array2d(dtype=int),
    weights: wp.array2d(dtype=float),
    posed: wp.array(dtype=wp.vec3),
):
    """Linear blend skinning."""
    vertex = wp.tid()
    place = wp.vec3(0.0, 0.0, 0.0)
    for slot in range(slots.shape[1]):
        bone = slots[vertex, slot]
        if bone >= 0:
            place += weights[vertex, slot] * (rotations[bone] @ rest[vertex] + offsets[bone])
    posed[vertex] = place


@wp.func
def average_once(
    points: wp.array(dtype=wp.vec3), neighbours: wp.array2d(dtype=int), count: int, moved: wp.array(dtype=wp.vec3)
):
    """The mean of the adjoining vertices."""
    for vertex in range(count):
        total = wp.vec3(0.0, 0.0, 0.0)
        found = wp.float32(0.0)
        for slot in range(neighbours.shape[1]):
            other = neighbours[vertex, slot]
            if other >= 0:
                total += points[other]
                found += 1.0
        if found > 0.0:
            moved[vertex] = total / found
        else:
            moved[vertex] = points[vertex]


@wp.kernel
def average_neighbours(
    points: wp.array(dtype=wp.vec3),
    spare: wp.array(dtype=wp.vec3),
    neighbours: wp.array2d(dtype=int),
    count: int,
    rounds: int,
):
    """The mean of the adjoining vertices twice per round, on one thread; a launch for each costs more than the sums."""
    for _ in range(rounds):
        average_once(points, neighbours, count, spare)
        average_once(spare, neighbours, count, points)


@wp.kernel
def sum_normals(vertices: wp.array(dtype=wp.vec3), triangles: wp.array(dtype=wp.vec3i), sums: wp.array(dtype=wp.vec3)):
    """Normals weighted by area, on one thread."""
    for index in range(triangles.shape[0]):
        corners = triangles[index]
        a = vertices[corners[0]]
        normal = wp.cross(vertices[corners[1]] - a, vertices[corners[2]] - a)
        sums[corners[0]] = sums[corners[0]] + normal
        sums[corners[1]] = sums[corners[1]] + normal
        sums[corners[2]] = sums[corners[2]] + normal


@wp.kernel
def normalise(vectors: wp.array(dtype=wp.vec3)):
    """Vectors at length 1; zero stays zero."""
    vertex = wp.tid()
    vectors[vertex] = wp.normalize(vectors[vertex])
