"""Evaluation: which answer a response gives, whether it is right, and which model is better."""

from dtca_core.evaluation.comparison import PairedComparison, paired_test, wilson_interval
from dtca_core.evaluation.protocols import PROTOCOLS, Protocol, Setup, task_of
from dtca_core.evaluation.scoring import Score, score_answers

__all__ = [
    "PROTOCOLS",
    "PairedComparison",
    "Protocol",
    "Score",
    "Setup",
    "paired_test",
    "score_answers",
    "task_of",
    "wilson_interval",
]
