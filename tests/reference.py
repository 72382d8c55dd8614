"""The loop-by-loop specification, where this checkout has it beside it.

Tests of one equation call `specification()` and are skipped where ../shared is absent.
"""

import importlib.machinery
import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

SPECIFICATION = Path(__file__).parents[2] / "shared" / "reference" / "dtca_reference.py"


class _SourceOnly(importlib.machinery.SourceFileLoader):
    """Loads a module and leaves no bytecode beside it: the folder is not ours."""

    def set_data(self, path, data, *, _mode=0o666):
        pass


@cache
def specification() -> ModuleType:
    """Return the specification as a module, or skip the test that asks for it."""
    if not SPECIFICATION.is_file():
        pytest.skip(f"{SPECIFICATION} is absent")
    loader = _SourceOnly("dtca_reference", str(SPECIFICATION))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("dtca_reference", loader)
    )
    loader.exec_module(module)
    return module
