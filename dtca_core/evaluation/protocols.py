r"""Named ways to ask, to denoise and to read, so that an accuracy can be compared within one.

A protocol has a set-up for each task: answers in LaTeX (`math`), or plain numbers (`gsm8k`). Where
a published protocol is not followed to the letter, its `source` says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from dtca_core.config import Budget, SamplerConfig
from dtca_core.errors import ConfigError
from dtca_core.evaluation.rational import rational
from dtca_core.evaluation.shots import GSM8K_SHOTS, Shot

QUESTION = "{question}"
"""Stands for the problem in an instruction."""

Task = Literal["math", "gsm8k"]
"""What answers look like: LaTeX expressions, or plain numbers."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a problem becomes for the model."""

    instruction: str
    """The user's message; `{question}` stands for the problem."""
    shots: tuple[Shot, ...] = ()
    """Worked examples that come first, each a turn of the user and one of the assistant."""
    template: str | None = None
    """Text around the user's message, special tokens included; None: the model's chat template."""
    prefill: str = ""
    """How the assistant's answer is made to begin; it is not part of the response."""

    def message(self, question: str) -> str:
        """Return the user's message that asks a question."""
        return self.instruction.replace(QUESTION, question)

    def chat(self, question: str) -> list[dict[str, str]]:
        """Return the conversation up to the user's message that asks a question."""
        turns = [(self.message(shot.question), shot.answer) for shot in self.shots]
        messages = [
            message
            for asked, answered in turns
            for message in (_said("user", asked), _said("assistant", answered))
        ]
        return [*messages, _said("user", self.message(question))]


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


@dataclass(frozen=True, kw_only=True)
class Published:
    """An accuracy that others published for this set-up."""

    model: str
    dataset: str
    gen_length: int
    percent: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A protocol on one task."""

    prompt: Prompt
    sampler: SamplerConfig
    """How responses are denoised, but for length and steps."""
    budgets: tuple[Budget, ...]
    """The lengths and steps to evaluate at."""
    reading: Literal["ours", "d1"] = "ours"
    """Who finds and compares the answer: see `scoring` and `d1`."""
    needs_box: bool = False
    r"""Whether a right answer counts only in a `\boxed`."""
    expected: tuple[Published, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A named way to evaluate."""

    name: str
    source: str
    """Where it comes from, and what of it is ours."""
    setups: Mapping[Task, Setup]


def _budgets(*lengths_and_steps: tuple[int, int]) -> tuple[Budget, ...]:
    return tuple(Budget(gen_length=length, steps=steps) for length, steps in lengths_and_steps)


def _published(dataset: str, source: str, **percents: float) -> tuple[Published, ...]:
    """Return accuracies of LLaDA-8B-Instruct by length, named `at_128=26.0`."""
    return tuple(
        Published(
            model="LLaDA-8B-Instruct",
            dataset=dataset,
            gen_length=int(name.removeprefix("at_")),
            percent=percent,
            source=source,
        )
        for name, percent in percents.items()
    )


_PLAIN = Setup(
    prompt=Prompt(instruction=QUESTION),
    sampler=SamplerConfig(gen_length=40, block_length=8, steps=20),
    budgets=_budgets((40, 5), (40, 10), (40, 20)),
)

_DRIFT = Setup(
    prompt=Prompt(
        instruction="You need to put your final answer in \\boxed{}. This is the problem:\n"
        + QUESTION,
        template=f"<|startoftext|><|start_header_id|>user<|end_header_id|>{QUESTION}<|eot_id|>"
        "<|startoftext|><|start_header_id|>assistant<|end_header_id|>\n",
    ),
    sampler=SamplerConfig(
        gen_length=256, block_length=32, steps=256, threshold=0.9, cache="prefix"
    ),
    budgets=_budgets((128, 128), (256, 256), (512, 512)),
    needs_box=True,
)


def _d1_prompt(*, space: str, ending: str) -> Prompt:
    """Return d1's prompt; those of its two data sets differ in a space and in how they end."""
    return Prompt(
        instruction="You are a math expert. You will be given a question to solve. Solve it step "
        "by step. Wrap the final answer in a \\boxed{}."
        f"{space}\nRespond in the following format:\n"
        "<reasoning>\nYour reasoning here\n</reasoning>\n<answer>\n\\boxed{...}\n</answer>"
        f"{ending}\n\n{QUESTION}",
        prefill="<reasoning>",
    )


_D1_SAMPLER = SamplerConfig(gen_length=256, block_length=32, steps=128)
_D1_BUDGETS = _budgets((128, 64), (256, 128), (512, 256))

_LLADA = "EVAL.md of ML-GSAI/LLaDA, with OpenCompass"

PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        "plain": Protocol(
            name="plain",
            source="Ours: the question alone in the model's own chat template, denoised as the "
            "embedded model is. No number is published.",
            setups={"math": _PLAIN, "gsm8k": _PLAIN},
        ),
        "drift": Protocol(
            name="drift",
            source="ant-research/Drift: trainer/prompts.py, configs/eval/eval_llada_math.yaml. "
            "Zero-shot, its own template, threshold 0.9 with a prefix cache. Its cached forwards "
            "see at most 128 tokens beyond the block; ours see all. Where answers are not equal it "
            "tries cleaned-up strings too; we compare exactly. No number of LLaDA-8B-Instruct is "
            "published in its repository.",
            setups={"math": _DRIFT, "gsm8k": _DRIFT},
        ),
        "d1": Protocol(
            name="d1",
            source="dllm-reasoning/d1: eval/. Zero-shot, the instruction in the user's turn, the "
            "response begins after an opening reasoning tag, two tokens a step, no cache; answers "
            "are read and compared as d1 does. It attends to padding on the left, we do not; it "
            "reads what follows the end of a response too, we do not.",
            setups={
                "math": Setup(
                    prompt=_d1_prompt(space="", ending='" \n'),
                    sampler=_D1_SAMPLER,
                    budgets=_D1_BUDGETS,
                    reading="d1",
                    expected=_published(
                        "MATH500", "d1, table of baselines", at_128=26.0, at_256=32.4, at_512=36.2
                    ),
                ),
                "gsm8k": Setup(
                    prompt=_d1_prompt(space=" ", ending=""),
                    sampler=_D1_SAMPLER,
                    budgets=_D1_BUDGETS,
                    reading="d1",
                    expected=_published(
                        "GSM8K test",
                        "d1, table of baselines; 128 and 256 as recalled",
                        at_128=68.7,
                        at_256=76.7,
                        at_512=78.2,
                    ),
                ),
            },
        ),
        "llada": Protocol(
            name="llada",
            source="ML-GSAI/LLaDA: EVAL.md, which evaluates with OpenCompass. One token a step. "
            "GSM8K with four worked examples as turns, MATH without. The examples are ours in the "
            "same form, and so are reading and comparison of answers; the published number of MATH "
            "is of its whole test set, not of MATH500.",
            setups={
                "math": Setup(
                    prompt=Prompt(
                        instruction=f"{QUESTION}\nPlease reason step by step, and put your final "
                        "answer within \\boxed{}."
                    ),
                    sampler=SamplerConfig(gen_length=512, block_length=64, steps=512),
                    budgets=_budgets((512, 512)),
                    expected=_published("MATH test", _LLADA, at_512=42.7),
                ),
                "gsm8k": Setup(
                    prompt=Prompt(
                        instruction=f"Question: {QUESTION}\nLet's think step by step\nAnswer:",
                        shots=GSM8K_SHOTS,
                    ),
                    sampler=SamplerConfig(gen_length=256, block_length=8, steps=256),
                    budgets=_budgets((256, 256)),
                    expected=_published("GSM8K test", f"{_LLADA}; other examples", at_256=78.9),
                ),
            },
        ),
    }
)
"""Every protocol by its name."""


def task_of(references: Sequence[str]) -> Task:
    """Return the task of a split: `gsm8k` where more than 9 of 10 references are plain numbers.

    Of MATH500's references 6 in 10 are, of GSM8K's all, but for what is missing in some files.
    It decides how all answers are read; so give the references of a whole split, not of a batch.
    """
    numbers = sum("\\" not in text and rational(text.strip()) is not None for text in references)
    return "gsm8k" if numbers > 0.9 * len(references) else "math"


def find_setup(name: str, task: Task) -> Setup:
    """Return a protocol on a task, or raise ConfigError that lists all protocols."""
    if name not in PROTOCOLS:
        raise ConfigError(
            f"protocol {name!r} does not exist; use one of {', '.join(sorted(PROTOCOLS))}."
        )
    return PROTOCOLS[name].setups[task]
