"""Worked examples for few-shot prompts. Ours; none is a problem of a public data set."""

from typing import NamedTuple


class Shot(NamedTuple):
    """A problem and how the assistant answers it."""

    question: str
    answer: str


GSM8K_SHOTS = (
    Shot(
        question="A baker fills 7 trays with 12 rolls each and sells 59 rolls before noon. How "
        "many rolls are left?",
        answer="The baker starts with 7 trays of 12 rolls, which is 7 * 12 = 84 rolls.\n"
        "After selling 59 of them, 84 - 59 = 25 rolls are left.\n"
        "The answer is 25",
    ),
    Shot(
        question="Nora reads 18 pages on Monday, twice as many on Tuesday, and 6 pages fewer on "
        "Wednesday than on Tuesday. How many pages does she read on the three days?",
        answer="On Tuesday Nora reads 2 * 18 = 36 pages.\n"
        "On Wednesday she reads 36 - 6 = 30 pages.\n"
        "On the three days she reads 18 + 36 + 30 = 84 pages.\n"
        "The answer is 84",
    ),
    Shot(
        question="A ferry ticket costs $9 for an adult and a third of that for a child. What does "
        "a family of 2 adults and 4 children pay?",
        answer="A child's ticket costs 9 / 3 = 3 dollars.\n"
        "The 2 adults pay 2 * 9 = 18 dollars and the 4 children pay 4 * 3 = 12 dollars.\n"
        "The family pays 18 + 12 = 30 dollars.\n"
        "The answer is 30",
    ),
    Shot(
        question="A tank holds 600 liters. It is 40% full when a pump begins to add 45 liters a "
        "minute. After how many minutes is the tank full?",
        answer="The tank holds 600 * 0.4 = 240 liters at first.\n"
        "So 600 - 240 = 360 liters are missing.\n"
        "At 45 liters a minute this takes 360 / 45 = 8 minutes.\n"
        "The answer is 8",
    ),
)
"""Four examples in the manner of GSM8K, each ending in "The answer is" and the number."""
