"""Prepare: the problems to train, validate and evaluate on, with nothing in two of these."""

from collections.abc import Sequence
from pathlib import Path

import torch

from dtca_core.config import DataConfig
from dtca_core.data.contamination import contaminated
from dtca_core.data.problems import (
    PROBLEM_SCHEMA,
    Problem,
    deduplicate,
    drop_unanswered,
    read_problems,
)
from dtca_core.data.word_problems import Split, generated_problems
from dtca_core.errors import DataError
from dtca_core.randomness import stream
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import table_from_rows, write_table

PROBLEMS_FILE = "problems.parquet"
"""File of a dataset artifact."""

Splits = dict[str, list[Problem]]
"""Problems by split: train, validation, test."""


def files(config: DataConfig) -> dict[str, Path]:
    """Return the problem files that the settings name, by the setting's name."""
    if config.evaluation_source is None:
        return {}
    named = {
        "source": Path(config.source).expanduser(),
        "evaluation_source": Path(config.evaluation_source).expanduser(),
    }
    for name, path in named.items():
        if not path.is_file():
            raise DataError(f"problem file {path} does not exist; correct data.{name}.")
    return named


def build(context: StageContext) -> Counts:
    """Write the problems of every split."""
    config: DataConfig = context.config
    counts: Counts = {}
    splits = _from_files(config, counts) if files(config) else _generated(config)
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
    sizes: dict[Split, int] = {
        "train": config.num_train,
        "validation": config.num_validation,
        "test": config.num_test,
    }
    return {split: generated_problems(split, size, config.seed) for split, size in sizes.items()}


def _from_files(config: DataConfig, counts: Counts) -> Splits:
    columns = config.question_column, config.answer_column
    named = files(config)
    train = _clean(named["source"], *columns, counts, "train")
    test = _clean(named["evaluation_source"], *columns, counts, "test")[: config.num_test]
    if not test:
        raise DataError(
            f"{config.evaluation_source} holds no problem with an answer; give a file that does."
        )
    train = _decontaminated(train, test, config, counts)
    order = torch.randperm(len(train), generator=stream(config.seed, "validation split"))
    shuffled = [train[i] for i in order.tolist()]
    held_out = min(config.num_validation, len(shuffled) // 2)
    if not held_out:
        raise DataError(
            f"{config.source} leaves {len(train)} training problems; at least 2 are needed, one "
            "to train on and one to validate on. Give a larger file."
        )
    return {
        "train": shuffled[held_out : held_out + config.num_train],
        "validation": shuffled[:held_out],
        "test": test,
    }


def _clean(
    path: Path, question_column: str, answer_column: str, counts: Counts, name: str
) -> list[Problem]:
    problems = read_problems(path, question_column, answer_column)
    # Those without an answer go first: of two alike, the one that can be solved must stay.
    answered, counts[f"{name}_unanswered"] = drop_unanswered(problems)
    kept, counts[f"{name}_duplicates"] = deduplicate(answered)
    return kept


def _decontaminated(
    train: Sequence[Problem], test: Sequence[Problem], config: DataConfig, counts: Counts
) -> list[Problem]:
    """Return the training problems that are no evaluation problems; refuse if told to."""
    shared = contaminated([p.question for p in train], [p.question for p in test])
    counts["contaminated"] = len(shared)
    if shared and config.on_contamination == "refuse":
        first = "\n".join(f"  {train[i].question[:120]!r}" for i, _ in shared[:3])
        raise DataError(
            f"{len(shared)} of {len(train)} training problems in {config.source} are evaluation "
            f"problems of {config.evaluation_source}; the first are\n{first}\nTrain on a clean "
            "file, or set data.on_contamination to 'drop'."
        )
    leaky = {i for i, _ in shared}
    return [problem for i, problem in enumerate(train) if i not in leaky]


PREPARE = StageSpec(
    name="prepare",
    kind="dataset",
    version=1,
    config=DataConfig,
    inputs=(),
    needs_model=False,
    build=build,
    files=files,
)
