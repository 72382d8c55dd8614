r"""Named ways to ask and to read, so that an accuracy can be compared within one of them.

The protocols of d1 and of LLaDA's own evaluation are left out: both need a prefilled or
few-shot prompt, and d1 reads answer tags.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtca_core.errors import ConfigError

QUESTION = "{question}"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a problem becomes for the model, and where its answer is looked for."""

    name: str
    """The name in the config."""
    instruction: str
    """The user's message; `{question}` stands for the problem."""
    extraction: str
    """Name of a function in `extraction.EXTRACTIONS`."""
    source: str
    """Where the protocol comes from, and what of it is ours."""
    expected: Mapping[str, float] = field(default_factory=dict[str, float])
    """Published accuracies in percent, by model, dataset and length; empty where none is known."""

    def message(self, question: str) -> list[dict[str, str]]:
        """Return the chat of one user's message that asks a question."""
        return [{"role": "user", "content": self.instruction.replace(QUESTION, question)}]


PROTOCOLS: Mapping[str, Protocol] = {
    "plain": Protocol(
        name="plain",
        instruction=QUESTION,
        extraction="stated",
        source="Ours: the question alone in the model's own chat template. The answer is read by "
        "the conventions of this project: a box first, then weaker ways to state an answer.",
    ),
    "drift": Protocol(
        name="drift",
        instruction=f"Solve this problem and put its final answer in \\boxed{{}}.\n{QUESTION}",
        extraction="boxed",
        source="After Drift (dLLM-RL): zero-shot, one instruction to box, then the problem; the "
        "last balanced box is the answer. The wording of the instruction is ours, and so is the "
        "use of the model's own chat template. No published number is known whose length and "
        "wording agree.",
    ),
}
"""Every protocol by its name."""


def find_protocol(name: str) -> Protocol:
    """Return the protocol of that name, or raise ConfigError that lists them all."""
    if name not in PROTOCOLS:
        raise ConfigError(
            f"protocol {name!r} does not exist; use one of {', '.join(sorted(PROTOCOLS))}."
        )
    return PROTOCOLS[name]
