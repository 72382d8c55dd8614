"""Prepare: the problems to train, validate and evaluate on, with nothing in two of these."""

from collections.abc import Sequence
from pathlib import Path

import torch

from dtca_core.config import DataConfig
from dtca_core.data.contamination import MATCH_KINDS, Match, contaminated
from dtca_core.data.hub import HUB_DATASETS, Purpose, check_purpose, hub_rows
from dtca_core.data.problems import (
    PROBLEM_SCHEMA,
    Problem,
    deduplicate,
    drop_unanswered,
    num_contradicting,
    problems_of,
    read_problems,
)
from dtca_core.data.word_problems import Split, generated_problems
from dtca_core.errors import DataError
from dtca_core.evaluation.scoring import unreadable_references
from dtca_core.randomness import stream
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import table_from_rows, write_table

PROBLEMS_FILE = "problems.parquet"
"""File of a dataset artifact."""

Splits = dict[str, list[Problem]]
"""Problems by split: train, validation, test."""

_PURPOSES: dict[str, Purpose] = {"source": "training", "evaluation_source": "evaluation"}
"""What the problems of a setting are for."""


def files(config: DataConfig) -> dict[str, Path]:
    """Return the problem files that the settings name, by the setting's name.

    A dataset of the hub is not among them: its name stays in the key, and means pinned rows.

    Raises:
        DataError: a file is not there, or a dataset has no split for what it is to be used for.
    """
    named: dict[str, Path] = {}
    for setting, purpose in _PURPOSES.items():
        source = getattr(config, setting)
        if source in HUB_DATASETS:
            check_purpose(source, purpose)
        elif config.evaluation_source is not None:
            named[setting] = _file(source, setting, purpose)
    return named


def _file(source: str, setting: str, purpose: Purpose) -> Path:
    path = Path(source).expanduser()
    if not path.is_file():
        known = [name for name, dataset in HUB_DATASETS.items() if purpose in dataset.splits]
        raise DataError(
            f"problem file {path} does not exist; correct data.{setting}, or use a dataset of the "
            f"hub by name: {' or '.join(known)}."
        )
    return path


def build(context: StageContext) -> Counts:
    """Write the problems of every split."""
    config: DataConfig = context.config
    counts: Counts = {}
    splits = _generated(config) if config.source == "embedded" else _given(context, counts)
    rows = [
        {
            "problem_id": problem.problem_id,
            "split": split,
            "question": problem.question,
            "answer": problem.answer,
            "kind": problem.kind,
        }
        for split, problems in splits.items()
        for problem in problems
    ]
    write_table(context.folder / PROBLEMS_FILE, table_from_rows(rows, PROBLEM_SCHEMA))
    context.listener.progress(len(rows), len(rows), "problems")
    return counts | {split: len(problems) for split, problems in splits.items()}


def _generated(config: DataConfig) -> Splits:
    sizes: dict[Split, int | None] = {
        "train": config.num_train,
        "validation": config.num_validation,
        "test": config.num_test,
    }
    return {
        split: generated_problems(split, size, config.seed)
        for split, size in sizes.items()
        if size is not None  # DataConfig needs numbers here.
    }


def _given(context: StageContext, counts: Counts) -> Splits:
    """Return the splits of files and hub datasets.

    The gate sees every evaluation problem, also those beyond `num_test`, and validation is cut
    from what passed it.
    """
    config: DataConfig = context.config
    train = _clean(context, "source", counts, "train")
    test = _clean(context, "evaluation_source", counts, "test")
    if not test:
        raise DataError(
            f"{config.evaluation_source} holds no problem with an answer; give a file that does."
        )
    train = _decontaminated(train, test, context, counts)
    order = torch.randperm(len(train), generator=stream(config.seed, "validation split"))
    shuffled = [train[i] for i in order.tolist()]
    held_out = min(config.num_validation, len(shuffled) // 2)
    if not held_out:
        raise DataError(
            f"{config.source} leaves {len(train)} training problems; at least 2 are needed, one "
            "to train on and one to validate on. Give a larger file."
        )
    return {
        "train": shuffled[held_out:][: config.num_train],
        "validation": shuffled[:held_out],
        "test": test[: config.num_test],
    }


def _clean(context: StageContext, setting: str, counts: Counts, name: str) -> list[Problem]:
    """Return the problems of a source that can be used, each once; what was dropped is counted."""
    problems = _problems(context.config, setting)
    # Those without an answer go first: of two alike, the one that can be solved must stay.
    answered, counts[f"{name}_unanswered"] = drop_unanswered(problems)
    readable = _readable(answered, context, counts, name)
    kept, duplicates = deduplicate(readable)
    counts[f"{name}_duplicates"] = len(duplicates)
    counts[f"{name}_contradicting"] = num_contradicting(kept, duplicates)
    if len(kept) < len(problems):
        context.listener.note(
            f"{getattr(context.config, setting)}: {len(problems)} problems, dropped "
            f"{counts[f'{name}_unanswered']} without an answer and {len(duplicates)} duplicates, "
            f"{counts[f'{name}_contradicting']} of these with another answer than the one kept"
        )
    return kept


def _readable(
    problems: list[Problem], context: StageContext, counts: Counts, name: str
) -> list[Problem]:
    """Return the problems whose reference an answer can agree with; the others could never pay."""
    unreadable = set(unreadable_references([problem.answer for problem in problems]))
    counts[f"{name}_unreadable"] = len(unreadable)
    if unreadable:
        first = ", ".join(repr(problems[i].answer[:60]) for i in sorted(unreadable)[:3])
        context.listener.note(
            f"{name}: dropped problems whose reference cannot be read as an answer: "
            f"{len(unreadable)}, such as {first}"
        )
    return [problem for i, problem in enumerate(problems) if i not in unreadable]


def _problems(config: DataConfig, setting: str) -> list[Problem]:
    source: str = getattr(config, setting)
    if source in HUB_DATASETS:
        return problems_of(hub_rows(source, _PURPOSES[setting]), None, None, source)
    question, answer = config.question_column, config.answer_column
    if setting == "evaluation_source":
        question = config.evaluation_question_column or question
        answer = config.evaluation_answer_column or answer
    return read_problems(files(config)[setting], question, answer)


def _decontaminated(
    train: Sequence[Problem], test: Sequence[Problem], context: StageContext, counts: Counts
) -> list[Problem]:
    """Return the training problems that are no evaluation problems; refuse if told to."""
    config: DataConfig = context.config
    matches = contaminated([p.question for p in train], [p.question for p in test])
    counts["contaminated"] = len(matches)
    for kind in MATCH_KINDS:
        counts[f"contaminated_{kind}"] = sum(match.kind == kind for match in matches)
    if not matches:
        return list(train)
    found = (
        f"{len(matches)} of {len(train)} training problems in {config.source} are evaluation "
        f"problems of {config.evaluation_source}: {counts['contaminated_exact']} word for word, "
        f"{counts['contaminated_normalised']} but for spacing, case or punctuation, "
        f"{counts['contaminated_near']} reworded"
    )
    if config.on_contamination == "refuse":
        first = "\n".join(_described(match, train, test) for match in matches[:3])
        raise DataError(
            f"{found}. The first are\n{first}\nTrain on a clean file, or set "
            "data.on_contamination to 'drop' to train without them."
        )
    context.listener.note(f"{found}; they were dropped")
    leaky = {match.train for match in matches}
    return [problem for i, problem in enumerate(train) if i not in leaky]


def _described(match: Match, train: Sequence[Problem], test: Sequence[Problem]) -> str:
    line = f"  {train[match.train].question[:120]!r}"
    if match.kind == "near":
        line += f"\n    which rewords {test[match.evaluation].question[:120]!r}"
    return line


PREPARE = StageSpec(
    name="prepare",
    kind="dataset",
    version=2,
    config=DataConfig,
    inputs=(),
    needs_model=False,
    build=build,
    files=files,
)
