"""Every setting, checked before any compute. Imports no torch.

The defaults are the embedded pipeline: a laptop runs `PipelineConfig()` whole. A field made
with `execution` says only how fast to go; it is left out of every artifact's key.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dtca_core.errors import ConfigError

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
S = TypeVar("S", bound="Settings")


def execution(default: Any, *, description: str, **bounds: Any) -> Any:
    """Return a field that says how fast to go and never what comes out; it is in no key."""
    return Field(
        default=default, description=description, json_schema_extra={"execution": True}, **bounds
    )


class Settings(BaseModel):
    """A frozen record of settings that refuses unknown names."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _complete_sections(cls, values: Any) -> Any:
        """Let a section that is given in part keep the rest of this class's own default."""
        if not isinstance(values, dict):
            return values
        completed = dict(cast(dict[str, Any], values))
        for name, field in cls.model_fields.items():
            if isinstance(field.default, Settings) and isinstance(completed.get(name), dict):
                completed[name] = {**field.default.model_dump(), **completed[name]}
        return completed

    def keyed(self) -> dict[str, Any]:
        """Return the settings that decide the result, as plain JSON values."""
        plain = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            if (field.json_schema_extra or {}) == {"execution": True}:
                del plain[name]
            elif isinstance(value := getattr(self, name), Settings):
                plain[name] = value.keyed()
        return plain


class DataConfig(Settings):
    """Which problems to train on and to evaluate on."""

    source: str = Field(
        default="embedded",
        description="'embedded' (generated word problems), a dataset of the hub ('gsm8k' or "
        "'math-train'), or the path of a training file: JSON, JSON Lines or Parquet.",
    )
    evaluation_source: str | None = Field(
        default=None,
        description="A dataset of the hub ('gsm8k' or 'math500') or the path of a file with the "
        "evaluation problems; needed unless source is 'embedded'.",
    )
    question_column: str | None = Field(
        default=None,
        description="Column of the training file that holds the problem; null: question or "
        "problem, whichever there is.",
    )
    answer_column: str | None = Field(
        default=None,
        description="Column of the training file that holds the reference answer; null: answer "
        "or ground_truth_answer, whichever there is.",
    )
    evaluation_question_column: str | None = Field(
        default=None,
        description="The same for the evaluation file; null: as question_column says.",
    )
    evaluation_answer_column: str | None = Field(
        default=None, description="The same for the evaluation file; null: as answer_column says."
    )
    num_train: int | None = Field(
        default=2048,
        gt=0,
        description="Training problems, at most, in an order drawn from the seed; null: all.",
    )
    num_validation: int = Field(
        default=128,
        gt=0,
        description="Validation problems, drawn from the training problems before those: at most "
        "half of them.",
    )
    num_test: int | None = Field(
        default=600,
        gt=0,
        description="Evaluation problems, at most: the first, in the order of their source; "
        "null: all.",
    )
    seed: int = Field(default=0, ge=0, description="Seed of generation, split and order.")
    on_contamination: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="What to do with training problems that are evaluation problems.",
    )

    @model_validator(mode="after")
    def _training_needs_its_evaluation(self) -> "DataConfig":
        if (self.source == "embedded") != (self.evaluation_source is None):
            raise ValueError(
                f"source={self.source!r} with evaluation_source={self.evaluation_source!r}: "
                "training problems need evaluation problems, and the embedded problems bring "
                "their own; set both or neither."
            )
        return self

    @model_validator(mode="after")
    def _generated_problems_need_a_number(self) -> "DataConfig":
        if self.source == "embedded" and None in (self.num_train, self.num_test):
            raise ValueError(
                f"num_train={self.num_train}, num_test={self.num_test}: the embedded problems are "
                "generated, and there is no end of them; give numbers."
            )
        return self


class ModelConfig(Settings):
    """Which model to start from, and where it runs."""

    source: str = Field(
        default="embedded",
        description="'embedded', a local folder in the LLaDA layout, or a hub id.",
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="Type of the weights."
    )
    device: str = execution(
        "auto", description="'auto', 'cpu' or a CUDA device; auto takes a GPU where there is one."
    )


class Budget(Settings):
    """How much a response may cost at evaluation."""

    gen_length: int = Field(default=40, gt=0, description="Response length in tokens.")
    steps: int = Field(default=20, gt=0, description="Denoising steps.")


class SamplerConfig(Settings):
    """How a response is denoised."""

    gen_length: int = Field(default=256, gt=0, description="Response length in tokens.")
    block_length: int = Field(default=32, gt=0, description="Tokens per block; divides gen_length.")
    steps: int = Field(
        default=256, gt=0, description="Denoising steps in all; a multiple of the number of blocks."
    )
    temperature: float = Field(
        default=0.0, ge=0.0, le=10.0, description="Temperature of the proposals; 0 is greedy."
    )
    threshold: Fraction | None = Field(
        default=None, description="Commit every token at least this confident, and at least one."
    )
    factor: float | None = Field(
        default=None,
        gt=0.0,
        description="Commit the leading run whose n-th confidence is at least 1 - factor/(n+1).",
    )
    cache: Literal["none", "prefix", "dual"] = Field(
        default="none", description="Key/value cache: exact, refreshed once a block, or block only."
    )
    suppress_eos: bool = Field(default=False, description="Never propose the end-of-text token.")
    guidance: float = Field(
        default=0.0, ge=0.0, description="Classifier-free guidance scale; 0 is off."
    )
    stop_at_eos: bool = Field(
        default=False, description="Finish a row once everything up to its end token is decided."
    )

    @property
    def num_blocks(self) -> int:
        """Number of blocks of a response."""
        return self.gen_length // self.block_length

    @property
    def steps_per_block(self) -> int:
        """Steps spent on each block when no threshold or factor decides."""
        return self.steps // self.num_blocks

    def at(self, budget: Budget) -> "SamplerConfig":
        """Return these settings at a budget; refuses lengths that the blocks do not fit."""
        return SamplerConfig(**{**self.model_dump(), **budget.model_dump()})

    @model_validator(mode="after")
    def _blocks_fit(self) -> "SamplerConfig":
        if self.gen_length % self.block_length:
            below = self.gen_length - self.gen_length % self.block_length
            nearest = f"{below} or {below + self.block_length}" if below else self.block_length
            raise ValueError(
                f"gen_length={self.gen_length} is not a multiple of "
                f"block_length={self.block_length}; use {nearest}."
            )
        if self.steps % self.num_blocks:
            below = self.steps - self.steps % self.num_blocks
            nearest = f"{below} or {below + self.num_blocks}" if below else self.num_blocks
            raise ValueError(
                f"steps={self.steps} is not a multiple of the {self.num_blocks} blocks "
                f"(gen_length / block_length); use {nearest}."
            )
        return self

    @model_validator(mode="after")
    def _options_agree(self) -> "SamplerConfig":
        if self.threshold is not None and self.factor is not None:
            raise ValueError("threshold and factor both decide what is committed; set one.")
        if self.guidance and self.cache != "none":
            raise ValueError(
                f"guidance={self.guidance} needs a full forward at each step, but "
                f"cache={self.cache!r}; set cache to 'none' or guidance to 0."
            )
        return self


def _embedded_sampler(steps: int, temperature: float) -> SamplerConfig:
    return SamplerConfig(gen_length=40, block_length=8, steps=steps, temperature=temperature)


Protocol = Literal["plain", "drift", "d1", "llada"]
PROTOCOL_DESCRIPTION = "How a problem is asked and its answer read; see evaluation/protocols.py."


class RolloutsConfig(Settings):
    """The offline rollouts from which contributions are measured."""

    num_prompts: int = Field(default=128, gt=0, description="Training problems to sample from.")
    num_samples: int = Field(default=2, gt=0, description="Responses per problem.")
    protocol: Protocol = Field(default="plain", description=PROTOCOL_DESCRIPTION)
    sampler: SamplerConfig = _embedded_sampler(steps=40, temperature=0.7)
    seed: int = Field(default=0, ge=0, description="Seed of the samples.")
    batch_size: int = execution(64, gt=0, description="Responses denoised together.")
    shard_size: int = execution(32, gt=0, description="Problems per durable shard.")


class ContributionConfig(Settings):
    """How delta-P is measured."""

    scope: Literal["response", "block"] = Field(
        default="response",
        description="Where confidence is summed: the response or the token's block.",
    )
    batch_size: int = execution(128, gt=0, description="Denoising states evaluated together.")
    shard_size: int = execution(32, gt=0, description="Responses per durable shard.")


class WeightsConfig(Settings):
    """How contributions become category weights."""

    tagger: Literal["math", "spacy"] = Field(
        default="math", description="spaCy with a layer for mathematics, or plain spaCy."
    )
    normalisation: Literal["minmax", "ratio"] = Field(
        default="minmax",
        description="Scale means onto [low, high], or clip their ratio to the mean.",
    )
    low: float = Field(default=0.8, gt=0.0, description="Smallest weight.")
    high: float = Field(default=1.2, gt=0.0, description="Largest weight.")
    min_count: int = Field(
        default=20, gt=0, description="A category seen less often gets the mean weight."
    )
    bootstrap_samples: int = Field(
        default=1000, ge=100, description="Resamples that the intervals are taken from."
    )
    seed: int = Field(default=0, ge=0, description="Seed of the resamples.")

    @model_validator(mode="after")
    def _low_below_high(self) -> "WeightsConfig":
        if self.low > self.high:
            raise ValueError(f"low={self.low} is above high={self.high}; swap them.")
        return self


class CreditConfig(Settings):
    """Which steps are trained on and how strongly each token learns."""

    contribution: bool = Field(
        default=True, description="Use category weights; off: all are equal."
    )
    fraction: Fraction = Field(
        default=0.8, description="Share of the timestep score to be covered."
    )
    max_steps: int | None = Field(
        default=None, gt=0, description="At most this many steps a response."
    )
    low_prob_threshold: Fraction | None = Field(
        default=0.6,
        description="Also train masked positions whose final token has this probability; "
        "off: committed tokens only.",
    )


class EntropyConfig(Settings):
    """How the entropy change of an update is balanced."""

    calibration: bool = Field(default=True, description="Balance rises and falls of entropy.")
    estimate: Literal["paper", "exact"] = Field(
        default="paper", description="The (1-p)^2 estimate, or the exact first order."
    )
    scope: Literal["response", "batch"] = Field(
        default="response", description="Balance within each response or over the batch."
    )
    limit: Fraction = Field(
        default=0.2, description="Largest absolute lambda; 1 is the literal rule."
    )


class TrainConfig(Settings):
    """Reinforcement learning, strictly on-policy: one update per batch of rollouts."""

    updates: int = Field(default=60, gt=0, description="Optimizer updates.")
    prompts_per_update: int = Field(default=12, gt=0, description="Problems per update.")
    samples_per_prompt: int = Field(default=8, gt=1, description="Responses per problem: a group.")
    protocol: Protocol = Field(default="plain", description=PROTOCOL_DESCRIPTION)
    sampler: SamplerConfig = _embedded_sampler(steps=20, temperature=1.0)
    learning_rate: float = Field(default=2e-4, gt=0.0, description="AdamW's learning rate.")
    warmup_updates: int = Field(default=0, ge=0, description="Updates of linear warm-up.")
    betas: tuple[Fraction, Fraction] = Field(default=(0.9, 0.999), description="AdamW's betas.")
    weight_decay: float = Field(default=0.0, ge=0.0, description="AdamW's weight decay.")
    max_grad_norm: float = Field(
        default=1.0, gt=0.0, description="Gradient norm is clipped to this."
    )
    kl_coefficient: float = Field(
        default=0.0,
        ge=0.0,
        description="k3 divergence from the frozen start; 0 loads no reference.",
    )
    advantage: Literal["std-floor", "mean-only", "leave-one-out"] = Field(
        default="std-floor", description="How rewards of a group become advantages."
    )
    advantage_floor: float = Field(
        default=0.01, gt=0.0, description="Floor of the standard deviation."
    )
    credit: CreditConfig = CreditConfig()
    entropy: EntropyConfig = EntropyConfig()
    seed: int = Field(default=0, ge=0, description="Seed of problem order and samples.")
    validation_problems: int = Field(
        default=64, gt=0, description="Held-out problems per validation."
    )
    validate_every: int = Field(default=20, gt=0, description="Updates between validations.")
    regression_margin: Fraction = Field(
        default=0.15, description="Stop when validation falls this far below its value at update 0."
    )
    accelerate_config: str | None = execution(
        None, description="Config file of accelerate for several processes; none: one process."
    )
    save_every: int = execution(10, gt=0, description="Updates between resumable checkpoints.")
    keep_last: int = execution(2, gt=0, description="Resumable checkpoints to keep.")
    batch_size: int = execution(96, gt=0, description="Responses sampled together.")
    micro_batch_size: int = execution(128, gt=0, description="Denoising states per backward.")


class EvaluateConfig(Settings):
    """Accuracy at several budgets under one named protocol."""

    protocol: Protocol = Field(default="plain", description=PROTOCOL_DESCRIPTION)
    sampler: SamplerConfig | None = Field(
        default=None,
        description="How to denoise, in place of the protocol's own way; null: its own.",
    )
    budgets: tuple[Budget, ...] | None = Field(
        default=None,
        min_length=1,
        description="Lengths and steps to evaluate at, in place of the protocol's own.",
    )
    seed: int = Field(default=0, ge=0, description="Seed of the samples, if not greedy.")
    batch_size: int = execution(64, gt=0, description="Responses denoised together.")
    shard_size: int = execution(128, gt=0, description="Problems per durable shard.")

    @model_validator(mode="after")
    def _every_budget_fits(self) -> "EvaluateConfig":
        if self.sampler is None and self.budgets is None:
            return self
        from dtca_core.evaluation.protocols import PROTOCOLS  # which imports this module

        for setup in PROTOCOLS[self.protocol].setups.values():
            for budget in self.budgets or setup.budgets:
                (self.sampler or setup.sampler).at(budget)
        return self


class PipelineConfig(Settings):
    """The whole pipeline: one section per stage, and the model that they share."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    contribution: ContributionConfig = ContributionConfig()
    weights: WeightsConfig = WeightsConfig()
    train: TrainConfig = TrainConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    @model_validator(mode="after")
    def _enough_problems(self) -> "PipelineConfig":
        needs = {
            "rollouts.num_prompts": self.rollouts.num_prompts,
            "train.prompts_per_update": self.train.prompts_per_update,
        }
        for name, needed in needs.items():
            if self.data.num_train is not None and needed > self.data.num_train:
                raise ValueError(
                    f"{name}={needed} is more than data.num_train={self.data.num_train}; lower "
                    "the one or raise the other."
                )
        return self


class PretrainConfig(Settings):
    """How the embedded model is made from generated problems."""

    steps: int = Field(default=4500, gt=0, description="Optimizer steps.")
    batch_size: int = Field(default=64, gt=0, description="Responses per step.")
    gen_length: int = Field(
        default=40, gt=0, description="Response length in tokens, padding included."
    )
    d_model: int = Field(default=128, gt=0, description="Width of the model.")
    n_layers: int = Field(default=3, gt=0, description="Transformer blocks.")
    n_heads: int = Field(default=4, gt=0, description="Attention heads.")
    mlp_hidden_size: int = Field(default=512, gt=0, description="Width inside the MLP.")
    max_sequence_length: int = Field(default=256, gt=0, description="Prompt and response together.")
    rope_theta: float = Field(
        default=10000.0,
        gt=0.0,
        description="Base of the rotary angles; LLaDA-8B's 500000 is for longer texts than these.",
    )
    learning_rate: float = Field(default=1e-3, gt=0.0, description="AdamW's peak learning rate.")
    warmup_steps: int = Field(default=200, ge=0, description="Steps of linear warm-up.")
    weight_decay: float = Field(default=0.01, ge=0.0, description="AdamW's weight decay.")
    corpus_for_tokenizer: int = Field(
        default=5000, gt=0, description="Problems the tokenizer sees."
    )
    seed: int = Field(default=0, ge=0, description="Seed of corpus, weights and masks.")


def parse_settings(kind: type[S], values: Mapping[Any, Any], origin: str) -> S:
    """Return settings of `kind`, or raise ConfigError that names each wrong value.

    Args:
        kind: the class of the settings.
        values: plain values, as read from YAML.
        origin: where they come from, for the message.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{origin} cannot be used:\n{_explain(error)}") from None


def load_config(path: Path | None, overrides: Mapping[str, Any] | None = None) -> PipelineConfig:
    """Return the pipeline config of a YAML file, with dotted overrides applied on top.

    Without a file it is the embedded pipeline.
    """
    values = {} if path is None else _read_yaml(path)
    for name, value in (overrides or {}).items():
        _assign(values, name, value)
    origin = "the settings" if path is None else f"config file {path}"
    return parse_settings(PipelineConfig, values, origin)


def _read_yaml(path: Path) -> dict[Any, Any]:
    if not path.is_file():
        raise ConfigError(f"config file {path} does not exist; give the path of a YAML file.")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or no such date
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"config file {path} is not YAML ({reason}); see configs/embedded.yaml for one."
        ) from None
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ConfigError(
            f"config file {path} holds a {type(values).__name__}, not sections such as 'train:'; "
            "see configs/embedded.yaml for one."
        )
    return values


def _assign(values: dict[Any, Any], dotted: str, value: Any) -> None:
    """Set `a.b.c` in nested mappings."""
    *parents, leaf = dotted.split(".")
    for name in parents:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {dotted}: {name!r} is a value, not a section.")
        values = inner
    values[leaf] = value


def _explain(error: ValidationError) -> str:
    """Return one line per wrong value: its dotted name, what was found, what is needed."""
    lines: list[str] = []
    for entry in error.errors():
        name = ".".join(str(part) for part in entry["loc"]) or "the settings"
        needed = entry["msg"].removeprefix("Value error, ")
        if entry["type"] == "extra_forbidden":
            needed = "there is no such setting; correct the name or remove it"
        found = "" if isinstance(entry["input"], dict | BaseModel) else f" = {entry['input']!r}"
        lines.append(f"  {name}{found}: {needed}")
    return "\n".join(lines)
