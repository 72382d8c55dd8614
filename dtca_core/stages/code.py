"""The code that a stage runs, as one digest: comments and docstrings do not count.

A committed lock pairs each stage's VERSION with this digest. When the code has moved, a test
fails until somebody has decided whether the version must move too:

    python -m dtca_core.stages.code        says what moved
    python -m dtca_core.stages.code --lock records the decision
"""

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import dtca_core

_ROOT = Path(dtca_core.__file__).parent
LOCK_FILE = _ROOT / "stages" / "versions.lock.json"
"""Version and code digest of each stage."""


def code_digest(modules: Sequence[str]) -> str:
    """Return the digest of these modules and of all core modules that they import, in turn."""
    seen: set[str] = set()
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_imports(name))
    parts = [[name, _meaning(name)] for name in sorted(seen)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def current_versions() -> dict[str, dict[str, str | int]]:
    """Return version and code digest of every stage, as they are now."""
    from dtca_core.stages import STAGES

    return {
        spec.name: {"version": spec.version, "code": code_digest(spec.modules)}
        for spec in STAGES.values()
    }


def read_lock() -> dict[str, dict[str, str | int]]:
    """Return what was decided last."""
    return json.loads(LOCK_FILE.read_text(encoding="utf-8"))


def undecided() -> list[str]:
    """Return a line for each stage whose code or version is not what the lock says."""
    locked = read_lock() if LOCK_FILE.exists() else {}
    return [
        f"{name}: locked {locked.get(name)}, now {now}"
        for name, now in current_versions().items()
        if locked.get(name) != now
    ]


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_path(name).read_text(encoding="utf-8"))


def _path(name: str) -> Path:
    base = _ROOT.parent.joinpath(*name.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _is_module(name: str) -> bool:
    return name.startswith("dtca_core.") and _path(name).is_file()


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the core modules that a module imports, wherever in it, or names to run them."""
    found: set[str] = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(members)
            # What takes only modules out of a package does not run what the package is for.
            if not all(_is_module(member) for member in members):
                found.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # such as the module of a worker process
    return tuple(sorted(module for module in found if _is_module(module)))


@cache
def _meaning(name: str) -> str:
    """Return the source without comments and docstrings."""
    tree = ast.parse(ast.unparse(_tree(name)))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # pyright: ignore[reportAttributeAccessIssue]  # any node with a body
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def main() -> int:
    """Say what moved since the lock, or write the lock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", action="store_true", help="record version and code as they are")
    if parser.parse_args().lock:
        LOCK_FILE.write_text(json.dumps(current_versions(), indent=2) + "\n", encoding="utf-8")
        return 0
    lines = undecided()
    sys.stdout.writelines(f"{line}\n" for line in lines or ["nothing moved"])
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
