"""Measure judging on files of problems: `python bench/judging.py gsm8k_test.jsonl math500.json`.

Every reference is judged against itself and against the next one that differs; with
`--outputs FILE.parquet` (columns dataset, gen_length, generation, ground_truth) real responses are
judged too. Rates are after a warm-up and depend on the machine; compare within one run.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from rich.console import Console

from dtca_core.data.problems import read_problems
from dtca_core.evaluation import score_answers
from dtca_core.evaluation.scoring import Score

console = Console()


def timed(label: str, work: Callable[[], list[Score]]) -> None:
    """Print how many answers are right and undecided, and how many were judged a second."""
    start = time.perf_counter()
    scores = work()
    rate = len(scores) / (time.perf_counter() - start)
    right, undecided = sum(s.correct for s in scores), sum(s.undecided for s in scores)
    console.print(f"{label}: {right} of {len(scores)} right, {undecided} undecided, {rate:.0f}/s")


def next_other(references: list[str]) -> list[str]:
    """Return for each reference the next one, in a circle, that is another text."""
    doubled = references * 2
    return [
        next(other for other in doubled[index + 1 :] if other != reference)
        for index, reference in enumerate(references)
    ]


def main() -> None:
    """Judge what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", type=Path)
    parser.add_argument("--outputs", type=Path)
    arguments = parser.parse_args()
    score_answers(["\\boxed{\\sqrt4}"] * 8, ["2"] * 8)
    for path in arguments.problems:
        references = [problem.answer for problem in read_problems(path)]
        boxed = [f"\\boxed{{{text}}}" for text in references]
        others = [f"\\boxed{{{text}}}" for text in next_other(references)]
        timed(f"{path.name} against itself", lambda b=boxed, r=references: score_answers(b, r))
        timed(f"{path.name} against the next", lambda o=others, r=references: score_answers(o, r))
    if arguments.outputs:
        table = pl.read_parquet(arguments.outputs)
        for (dataset, length), rows in table.group_by(
            ["dataset", "gen_length"], maintain_order=True
        ):
            outputs, references = rows["generation"].to_list(), rows["ground_truth"].to_list()
            timed(f"{dataset} at {length}", lambda o=outputs, r=references: score_answers(o, r))


if __name__ == "__main__":
    main()
