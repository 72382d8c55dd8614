"""The command line `dtca`: run, plan, stage, artifacts, weights, report, pretrain.

Exit status 0; 1 if it failed; 2 if what was asked for cannot be, with one message.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from dtca_core.config import PipelineConfig, load_config
from dtca_core.errors import ArtifactError, ConfigError, DtcaError, RequestError
from flows.environment import prepare_environment

prepare_environment()

app = typer.Typer(
    help="Denoising Token Credit Assignment: RL for masked diffusion language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
artifacts_app = typer.Typer(help="What the store holds.", no_args_is_help=True)
app.add_typer(artifacts_app, name="artifacts")
weights_app = typer.Typer(help="Category weights side by side.", no_args_is_help=True)
app.add_typer(weights_app, name="weights")
console = Console(highlight=False)

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="YAML file; none: the embedded pipeline.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one setting: section.name=value; can be repeated."),
]


def read_config(path: Path | None, overrides: list[str] | None) -> PipelineConfig:
    """Return the config of a file with `section.name=value` overrides applied."""
    values: dict[str, object] = {}
    for text in overrides or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(
                f"--set {text!r} has no value; write section.name=value, such as "
                "weights.min_count=50."
            )
        try:
            values[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError) as error:  # ValueError: no such date
            reason = " ".join(str(error).split())
            raise ConfigError(f"--set {text!r}: {value!r} is not YAML ({reason}).") from None
    return load_config(path, values)


@app.command()
def run(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Run the whole pipeline; what the store holds already is not done again."""
    settings = read_config(config, overrides)
    from dtca_core.stages.pipeline import check

    # Before Prefect is started, so that a refusal takes a second and leaves no failed run.
    check(settings)
    from flows.show import run_pipeline

    run_pipeline(settings, console)


@app.command()
def plan(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Say which stages are fresh, which would run, and why; nothing is run."""
    settings = read_config(config, overrides)
    from dtca_core.stages.pipeline import steps
    from dtca_core.stages.plan import plan as plan_steps
    from tasks.references import open_store

    for step in plan_steps(open_store(), steps(settings)):
        word = "fresh    " if step.is_fresh else "would run"
        console.print(f"{step.name:<14} {word}  {step.reason}", soft_wrap=True)


def _reference(kind: str) -> Any:
    return typer.Option(help=f"Which {kind} artifact: latest, a key or its beginning, or a path.")


@app.command()
def stage(
    name: Annotated[str, typer.Argument(help="Name of the stage.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    dataset: Annotated[str | None, _reference("dataset")] = None,
    rollouts: Annotated[str | None, _reference("rollouts")] = None,
    contribution: Annotated[str | None, _reference("contribution")] = None,
    weights: Annotated[str | None, _reference("weights")] = None,
    checkpoint: Annotated[str | None, _reference("checkpoint")] = None,
    refresh: Annotated[bool, typer.Option(help="Build it even if the store holds it.")] = False,
) -> None:
    """Run one stage on artifacts that the store holds, by default the latest of each kind."""
    settings = read_config(config, overrides)
    given = {
        "dataset": dataset,
        "rollouts": rollouts,
        "contribution": contribution,
        "weights": weights,
        "checkpoint": checkpoint,
    }
    references = {kind: value for kind, value in given.items() if value is not None}
    from flows.show import run_one_stage

    run_one_stage(name, settings, references, refresh, console)


@app.command()
def report(
    output: Annotated[Path | None, typer.Option(help="Copy the page to this file.")] = None,
) -> None:
    """Say where the latest report is."""
    from dtca_core.stages.report import REPORT_FILE
    from tasks.references import resolve

    page = resolve("report", "latest").path / REPORT_FILE
    if output is not None:
        output.write_bytes(page.read_bytes())
        page = output
    console.print(str(page), soft_wrap=True)


@app.command()
def pretrain(
    output: Annotated[Path, typer.Argument(help="Folder for the new model.")],
    steps: Annotated[
        int | None, typer.Option(help="Optimizer steps instead of the recipe's.")
    ] = None,
) -> None:
    """Make the embedded model anew, from its seed."""
    from flows.show import run_pretraining

    run_pretraining(output, steps, console)


@artifacts_app.command("list")
def list_artifacts(
    kind: Annotated[str | None, typer.Argument(help="Only this kind.")] = None,
) -> None:
    """List artifacts, newest last."""
    from flows.tables import size_of
    from tasks.references import open_store

    for artifact in open_store().artifacts(kind):
        assert artifact.manifest is not None, "the store lists nothing without a manifest"
        when = artifact.manifest.finished.strftime("%Y-%m-%d %H:%M")
        console.print(
            f"{artifact.reference:<26} {when}  {artifact.manifest.seconds:8.1f} s  "
            f"{size_of(artifact.path):>10}",
            soft_wrap=True,
        )


@artifacts_app.command("show")
def show_artifact(
    kind: Annotated[str, typer.Argument(help="Kind of the artifact.")],
    reference: Annotated[str, typer.Argument(help="latest, a key or its beginning.")] = "latest",
) -> None:
    """Print the manifest of an artifact: settings, inputs, files, counts."""
    from tasks.references import resolve

    artifact = resolve(kind, reference)
    if artifact.manifest is None:
        raise ArtifactError(
            f"{artifact.path} was made by a person and has no manifest; name an artifact of the "
            "store by latest or the beginning of its key."
        )
    sys.stdout.write(artifact.manifest.to_json().decode())


@artifacts_app.command("verify")
def verify_artifacts(
    kind: Annotated[str | None, typer.Argument(help="Only this kind.")] = None,
) -> None:
    """Read every byte and name each file that is missing, truncated or altered."""
    from tasks.references import open_store

    verdicts = open_store().verify(kind)
    damaged = [verdict for verdict in verdicts if verdict.damages]
    for verdict in damaged:
        for damage in verdict.damages:
            console.print(f"{verdict.path}/{damage}", soft_wrap=True)
    console.print(f"{len(verdicts)} artifacts, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(1)


@artifacts_app.command("gc")
def collect_garbage(
    unreferenced: Annotated[
        bool, typer.Option(help="Also artifacts that went into no latest one.")
    ] = False,
    delete: Annotated[bool, typer.Option(help="Delete; without it they are only listed.")] = False,
) -> None:
    """List, or delete, what killed builds have left; a killed build then starts over."""
    from flows.tables import size_of
    from tasks.references import open_store

    store = open_store()
    targets = [*store.leftovers()]
    if unreferenced:
        targets += [artifact.path for artifact in store.unreferenced()]
    for path in targets:
        console.print(f"{path}  {size_of(path)}", soft_wrap=True)
        if delete:
            store.remove(path)
    verb = "deleted" if delete else "to delete (--delete does)"
    console.print(f"{len(targets)} {verb}")


@weights_app.command("diff")
def compare_weight_artifacts(
    before: Annotated[str, typer.Argument(help="latest, a key or its beginning, or a path.")],
    after: Annotated[str, typer.Argument(help="Likewise; a weights.json or its folder.")],
) -> None:
    """Say which categories' mean contributions moved by more than noise.

    With mean m and standard error e of each side, z = (m2 - m1) / sqrt(e1^2 + e2^2) is compared
    with the normal law, the p-values are corrected by Holm over all tested categories, and those
    below 0.05 are marked. The errors take responses, not tokens, as the unit. A category is tested
    if both sides have it in 10 responses or more, and min_count times. Weights are shown beside
    it, untested. The status is 0 whatever has moved.
    """
    from flows.weights_comparison import show_weights_comparison

    show_weights_comparison(before, after, console)


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        app()
    except RequestError as error:
        _fail(error, 2)
    except DtcaError as error:
        _fail(error, 1)


def _fail(error: DtcaError, status: int) -> None:
    sys.stderr.write(f"dtca: {error}\n")
    raise SystemExit(status)
