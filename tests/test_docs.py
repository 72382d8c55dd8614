"""The papers of the house: what they name exists, and what they tell people to type works."""

import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import typer
import yaml

ROOT = Path(__file__).parents[1]
PAPERS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "artifacts/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
CELLS = re.compile(r"(?<!\\)\|")
DOTTED = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+")
FILES = (".json", ".jsonl", ".md", ".parquet", ".py", ".yaml", ".html")


def read(name):
    """Return the text of a paper at the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def functions_of(text):
    """Return name and path of each function that a text links to, as `module.function`."""
    links = [(name.strip("`"), path) for name, path in LINK.findall(text) if name[0] == "`"]
    return [(name, path) for name, path in links if DOTTED.fullmatch(name)]


def find(name, path):
    """Return what `module.function` names in the module of a path, or None."""
    stem, _, function = name.partition(".")
    assert Path(path).stem == stem, f"{name} links to {path}"
    module = import_module(path.removesuffix(".py").replace("/", "."))
    return getattr(module, function, None)


def dotted_names(text):
    """Return the dotted names in a text that are no files."""
    return {
        name for name in CODE.findall(text) if DOTTED.fullmatch(name) and not name.endswith(FILES)
    }


def map_rows():
    """Return the cells of each row of the map of symbols."""
    lines = [line for line in read("ALGORITHM.md").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines[1:]]


def commands(paper, program):
    """Return the words of each command line of a program, in code blocks and in prose."""
    blocks = re.findall(r"```sh\n(.*?)```", paper, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    lines += CODE.findall(re.sub(r"```.*?```", "", paper, flags=re.DOTALL))
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"{program} ")]


def setting_exists(name):
    """Return whether a dotted name is a section or setting of the pipeline."""
    from dtca_core.config import PipelineConfig, Settings

    kind = PipelineConfig
    for part in name.split("."):
        if not issubclass(kind, Settings) or part not in kind.model_fields:
            return False
        kind = kind.model_fields[part].annotation
    return True


def test_every_symbol_of_the_map_has_an_equation_a_function_and_a_test():
    rows = map_rows()
    assert len(rows) >= 20
    for symbol, equation, functions, tests in rows:
        assert symbol
        assert equation
        assert functions_of(functions), f"{symbol} has no function"
        assert LINK.findall(tests), f"{symbol} has no test"


def test_every_function_of_the_map_exists():
    named = functions_of(read("ALGORITHM.md"))
    assert len(named) >= 20
    for name, path in named:
        assert callable(find(name, path)), f"{name} in {path} is no function"


def test_every_function_of_the_map_is_named_by_its_test():
    for symbol, _, functions, tests in map_rows():
        names = [name.partition(".")[2] for name, _ in functions_of(functions)]
        for _, path in LINK.findall(tests):
            text = read(path)
            unnamed = [name for name in names if not re.search(rf"\b{name}\b", text)]
            assert not unnamed, f"{symbol}: {path} does not mention {unnamed}"


def test_every_dotted_name_in_the_prose_of_the_map_is_a_setting_or_a_function():
    linked = {name for name, _ in functions_of(read("ALGORITHM.md"))}
    unlinked = dotted_names(read("ALGORITHM.md")) - linked
    assert not {name for name in unlinked if not setting_exists(name)}


def test_every_decision_says_what_is_done_and_why():
    decisions = re.split(r"^### \d+\. ", read("ALGORITHM.md"), flags=re.MULTILINE)[1:]
    assert len(decisions) == 11
    for decision in decisions:
        title = decision.partition("\n")[0]
        assert re.search(r"\*\*The (paper says|sources leave open)\*\*", decision), title
        assert "**We do:**" in decision, title
        assert "**Why:**" in decision, title


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(paper):
    for _, target in LINK.findall(paper.read_text(encoding="utf-8")):
        if "://" not in target:
            path = paper.parent / target.partition("#")[0]
            assert path.exists(), f"{paper.relative_to(ROOT)} links to {target}"


@cache
def command_line():
    """Return the command `dtca`."""
    from flows.cli import app

    return typer.main.get_command(app)


def options_of(command):
    """Return every option of a command, as it is typed."""
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"])
def test_every_dtca_command_exists_with_its_options(name):
    from dtca_core.stages import STAGES

    for words in commands(read(name), "dtca"):
        command, rest = command_line(), words[1:]
        while hasattr(command, "commands"):
            assert rest, f"{shlex.join(words)} lacks a subcommand"
            assert rest[0] in command.commands, shlex.join(words)
            command, rest = command.commands[rest[0]], rest[1:]
        if command.name == "stage":
            assert rest[0] in STAGES, shlex.join(words)
        options = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert options <= options_of(command), shlex.join(words)


def test_the_readme_shows_the_command_line():
    shown = {words[1] for words in commands(read("README.md"), "dtca")}
    assert shown == set(command_line().commands)


def test_every_setting_that_the_readme_sets_can_be_set():
    from dtca_core.config import load_config

    given = [
        words[i + 1]
        for words in commands(read("README.md"), "dtca")
        for i, word in enumerate(words)
        if word == "--set"
    ]
    assert given
    for text in given:
        name, _, value = text.partition("=")
        load_config(None, {name: yaml.safe_load(value)})


def test_every_dotted_name_in_the_readme_is_a_setting():
    assert not {name for name in dotted_names(read("README.md")) if not setting_exists(name)}


def test_every_deployment_that_the_readme_runs_exists():
    deployments = yaml.safe_load(read("prefect.yaml"))["deployments"]
    entrypoints = {entry["name"]: entry["entrypoint"] for entry in deployments}
    runs = [w[3] for w in commands(read("README.md"), "prefect") if w[1:3] == ["deployment", "run"]]
    assert "dtca/full-pipeline" in runs
    for flow, _, name in (run.partition("/") for run in runs):
        module = entrypoints[name].rpartition(".")[0].replace(".", "/")
        assert f'@flow(name="{flow}"' in read(f"{module}.py")


def test_every_artifact_kind_is_described():
    from dtca_core.stages import STAGES

    described = re.findall(r"^\| `(\w+)`", read("artifacts/README.md"), re.MULTILINE)
    assert sorted(described) == sorted(spec.kind for spec in STAGES.values())


def test_the_licence_is_whole():
    text = read("LICENSE")
    assert text.lstrip().startswith("Apache License")
    assert "APPENDIX: How to apply the Apache License to your work." in text
    assert text.rstrip().endswith("limitations under the License.")
