"""Fail when a lower layer of ``sapiens2`` imports a higher one (docs/adr/0001-layers-and-contracts.md)."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

LAYERS = (
    ("errors", "types", "_numbers", "_optional", "_versions"),
    ("assets", "geometry", "codecs", "losses"),
    ("models", "processing"),
    ("checkpoints", "metrics", "data", "io", "visualization"),
    ("results",),
    ("engines", "inference", "training", "export"),
    ("video", "services"),
    ("cli", "web"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FREE = {"__init__", "__main__", "_lazy"}  # the public façade may name everything
FORBIDDEN = ("transformers.models.sapiens2", "torchvision", "cv2")


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """Absolute module names that a file imports, with their lines; imports inside functions count."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                found.append((node.lineno, "<relative>"))
            elif node.module:
                found.append((node.lineno, node.module))
                if node.module == "sapiens2":
                    found += [(node.lineno, f"sapiens2.{alias.name}") for alias in node.names]
    return found


def violations(package: Path) -> list[str]:
    """One line for each import that breaks the rules."""
    problems: list[str] = []
    for path in sorted(package.rglob("*.py")):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        if own not in LEVEL and own not in FREE:
            problems.append(f"{path}: {own} has no layer; add it to LAYERS")
            continue
        for line, module in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
            if module == "<relative>":
                problems.append(f"{path}:{line}: relative import; write the absolute name")
            if any(module == name or module.startswith(name + ".") for name in FORBIDDEN):
                problems.append(f"{path}:{line}: {module} must not be imported here")
            parts = module.split(".")
            if parts[0] != "sapiens2" or len(parts) < 2 or own in FREE:
                continue
            if LEVEL.get(parts[1], -1) > LEVEL[own]:
                problems.append(f"{path}:{line}: {own} imports {parts[1]}, which is a higher layer")
    return problems


def main() -> int:
    problems = violations(Path(__file__).resolve().parents[1] / "src" / "sapiens2")
    print("\n".join(problems) or "import direction: fine")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
