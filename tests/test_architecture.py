"""The house: imports point one way, light parts stay light, and what may never be is not."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dtca_core", "tasks", "flows")
MAY_NOT_IMPORT = {"dtca_core": {"prefect", "tasks", "flows"}, "tasks": {"flows"}}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LITERAL_MASK_ID = 126_336
"""The mask token of LLaDA: a fact about one model, for the models' code and no other."""
NO_NOUN = {"utils", "common", "helpers", "types"}
PICKLING = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
ABSOLUTE = re.compile(r"(?<![\w./}\])])/(?:" + "|".join(["work", "home", "root", "tmp"]) + r")\b")


def name_of(path):
    """Return the path of a file as people say it."""
    return path.relative_to(ROOT).as_posix()


def offenders(is_wrong):
    """Return every module of ours that is wrong."""
    return [name_of(path) for path in MODULES if is_wrong(path)]


@cache
def nodes(path):
    """Return every node of a module's syntax tree, the module first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported_packages(path):
    """Return the top-level packages that a module imports, wherever in it."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} has a relative import"
            found.add(node.module.split(".")[0])
    return found


def attributes(path):
    """Return every dotted name that a module uses."""
    return {ast.unparse(node) for node in nodes(path) if isinstance(node, ast.Attribute)}


def has_shell(path):
    """Return whether a call of a module says `shell=` anything but False."""
    keywords = [node for node in nodes(path) if isinstance(node, ast.keyword)]
    return any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in keywords)


@pytest.mark.parametrize("package", MAY_NOT_IMPORT)
def test_imports_point_one_way(package):
    for path in (ROOT / package).rglob("*.py"):
        wrong = imported_packages(path) & MAY_NOT_IMPORT[package]
        assert not wrong, f"{name_of(path)} imports {sorted(wrong)}"


@pytest.mark.parametrize("module", ["dtca_core.config", "dtca_core.store"])
def test_light_parts_import_neither_torch_nor_prefect(module):
    program = f"import sys, {module}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {"torch", "transformers", "spacy", "prefect"} & set(done.stdout.split())


def test_every_module_says_what_it_is():
    assert not offenders(lambda path: not ast.get_docstring(nodes(path)[0]))


def test_every_module_is_named_by_a_noun():
    assert not offenders(lambda path: path.stem in NO_NOUN)


def test_the_mask_id_is_a_literal_of_the_models_only():
    models = ROOT / "dtca_core" / "models"
    literal = re.compile(rf"\b({LITERAL_MASK_ID}|{LITERAL_MASK_ID:_})\b")
    wrong = offenders(lambda path: literal.search(path.read_text(encoding="utf-8")))
    assert not [name for name in wrong if models not in (ROOT / name).parents]


def test_nothing_is_pickled():
    assert not offenders(lambda path: imported_packages(path) & PICKLING)
    assert not offenders(lambda path: attributes(path) & {"torch.load", "torch.save"})


def test_no_process_goes_through_a_shell():
    assert not offenders(has_shell)
    assert not offenders(lambda path: attributes(path) & {"os.system", "os.popen"})


def test_no_file_knows_where_it_lies():
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "configs").rglob("*.yaml")]
    files += [*ROOT.glob("*.yaml"), *ROOT.glob("*.toml"), ROOT / "Makefile"]
    for path in files:
        found = ABSOLUTE.search(path.read_text(encoding="utf-8"))
        assert not found, f"{name_of(path)} has the absolute path {found[0]}…"


def test_a_path_is_told_from_a_division():
    assert ABSOLUTE.search('open("' + "/" + 'tmp/x")')
    assert not ABSOLUTE.search("folder/work and ../home and a}/root")
