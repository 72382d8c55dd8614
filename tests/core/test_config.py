"""Tests of the settings: the defaults, what is keyed, and the message for what cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from dtca_core.config import (
    Budget,
    DataConfig,
    EvaluateConfig,
    PipelineConfig,
    PretrainConfig,
    SamplerConfig,
    Settings,
    TrainConfig,
    WeightsConfig,
    load_config,
    parse_settings,
)
from dtca_core.errors import ConfigError, RequestError

CONFIGS = Path(__file__).parents[2] / "configs"

EXECUTION = {
    "model.device",
    "rollouts.batch_size",
    "rollouts.shard_size",
    "contribution.batch_size",
    "contribution.shard_size",
    "train.accelerate_config",
    "train.save_every",
    "train.keep_last",
    "train.batch_size",
    "train.micro_batch_size",
    "evaluate.batch_size",
    "evaluate.shard_size",
}
"""Settings that are in no key: a new one has to be decided here, too."""


def names(values, prefix=""):
    """Dotted names of the leaves of nested settings."""
    if not isinstance(values, dict):
        return {prefix}
    return {
        name
        for key, value in values.items()
        for name in names(value, f"{prefix}.{key}" if prefix else key)
    }


def explained(kind, **values):
    """The message for settings that cannot be used, without its first line."""
    with pytest.raises(ConfigError) as refusal:
        parse_settings(kind, values, "this")
    first, _, rest = str(refusal.value).partition("\n")
    assert first == "this cannot be used:"
    return rest


@pytest.fixture
def yaml_file(tmp_path):
    """Return a function that writes a config file."""

    def write(text):
        path = tmp_path / "run.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


# -------------------------------------------------------------------------------- defaults


@pytest.mark.parametrize("kind", [PipelineConfig, SamplerConfig, PretrainConfig])
def test_defaults_are_valid_and_survive_json(kind):
    config = kind()
    assert kind.model_validate_json(config.model_dump_json()) == config
    assert kind.model_validate(config.model_dump()) == config


def settings_classes(kind=Settings):
    for child in kind.__subclasses__():
        yield child
        yield from settings_classes(child)


def test_every_number_and_choice_is_described():
    ours = [kind for kind in settings_classes() if kind.__module__ == "dtca_core.config"]
    assert PipelineConfig in ours
    for kind in ours:
        for name, field in kind.model_fields.items():
            if not isinstance(field.default, Settings):
                assert field.description, f"{kind.__name__}.{name}"


def test_settings_are_frozen():
    config = PipelineConfig()
    with pytest.raises(ValidationError, match="frozen"):
        config.train.updates = 3
    assert hash(SamplerConfig()) == hash(SamplerConfig())


def test_blocks_and_their_steps_by_hand():
    # By hand: 40 tokens in blocks of 8 are 5 blocks, and 20 steps are 4 for each.
    config = SamplerConfig(gen_length=40, block_length=8, steps=20)
    assert (config.num_blocks, config.steps_per_block) == (5, 4)


def test_a_budget_replaces_length_and_steps_of_the_sampler():
    budget = Budget(gen_length=96, steps=48)
    sampler = SamplerConfig(gen_length=64, steps=64, temperature=0.5)
    assert sampler.at(budget) == SamplerConfig(gen_length=96, steps=48, temperature=0.5)


# --------------------------------------------------------------------------------- the key


def test_the_key_leaves_out_exactly_what_says_how_fast_to_go():
    config = PipelineConfig()
    assert names(config.model_dump(mode="json")) - names(config.keyed()) == EXECUTION
    assert names(config.keyed()) <= names(config.model_dump(mode="json"))


@pytest.mark.parametrize("name", sorted(EXECUTION))
def test_an_execution_setting_changes_no_key(name):
    section, field = name.split(".")
    value = {"model.device": "cuda", "train.accelerate_config": "ddp.yaml"}.get(name, 7)
    config = PipelineConfig.model_validate({section: {field: value}})
    assert config != PipelineConfig()
    assert config.keyed() == PipelineConfig().keyed()


def test_any_other_setting_changes_the_key():
    for values in (
        {"train": {"sampler": {"temperature": 0.5}}},
        {"evaluate": {"budgets": [{"steps": 10}]}},
        {"model": {"dtype": "bfloat16"}},
    ):
        config = PipelineConfig.model_validate(values)
        assert config.keyed() != PipelineConfig().keyed()


# -------------------------------------------------------------------- what can never work


def test_an_unknown_name_is_named_with_its_section():
    assert explained(PipelineConfig, train={"learning_rat": 1e-4}, extra={}) == (
        "  train.learning_rat = 0.0001: there is no such setting; correct the name or remove it\n"
        "  extra: there is no such setting; correct the name or remove it"
    )


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (TrainConfig, {"updates": 0}, "  updates = 0: Input should be greater than 0"),
        (
            TrainConfig,
            {"samples_per_prompt": 1},
            "  samples_per_prompt = 1: Input should be greater than 1",
        ),
        (
            TrainConfig,
            {"updates": "many"},
            "  updates = 'many': Input should be a valid integer, unable to parse string as an "
            "integer",
        ),
        (
            TrainConfig,
            {"entropy": {"limit": 1.5}},
            "  entropy.limit = 1.5: Input should be less than or equal to 1",
        ),
        (
            SamplerConfig,
            {"cache": "both"},
            "  cache = 'both': Input should be 'none', 'prefix' or 'dual'",
        ),
        (
            SamplerConfig,
            {"temperature": -1},
            "  temperature = -1: Input should be greater than or equal to 0",
        ),
        (
            PipelineConfig,
            {"train": None},
            "  train = None: Input should be a valid dictionary or instance of TrainConfig",
        ),
        (
            EvaluateConfig,
            {"budgets": []},
            "  budgets = []: Tuple should have at least 1 item after validation, not 0",
        ),
    ],
)
def test_an_impossible_value_is_shown_with_what_is_needed(kind, values, message):
    assert explained(kind, **values) == message


@pytest.mark.parametrize("value", [float("inf"), float("nan"), float("-inf"), "inf"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(SamplerConfig, "guidance"), (SamplerConfig, "factor"), (TrainConfig, "learning_rate")],
)
def test_a_number_must_be_finite(kind, name, value):
    assert (
        explained(kind, **{name: value}) == f"  {name} = {value!r}: Input should be a finite number"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"gen_length": 100},
            "gen_length=100 is not a multiple of block_length=32; use 96 or 128.",
        ),
        ({"gen_length": 20}, "gen_length=20 is not a multiple of block_length=32; use 32."),
        (
            {"steps": 100},
            "steps=100 is not a multiple of the 8 blocks (gen_length / block_length); "
            "use 96 or 104.",
        ),
        (
            {"steps": 3},
            "steps=3 is not a multiple of the 8 blocks (gen_length / block_length); use 8.",
        ),
        (
            {"threshold": 0.9, "factor": 1.0},
            "threshold and factor both decide what is committed; set one.",
        ),
        (
            {"guidance": 0.5, "cache": "dual"},
            "guidance=0.5 needs a full forward at each step, but cache='dual'; set cache to "
            "'none' or guidance to 0.",
        ),
    ],
)
def test_settings_of_a_sampler_that_contradict_each_other(values, message):
    assert explained(SamplerConfig, **values) == f"  the settings: {message}"
    nested = explained(
        PipelineConfig, evaluate={"sampler": {**SamplerConfig().model_dump(), **values}}
    )
    assert nested == f"  evaluate.sampler: {message}"


def test_a_budget_that_does_not_fit_is_refused_before_anything_runs():
    message = explained(PipelineConfig, evaluate={"budgets": [{"steps": 40}, {"steps": 12}]})
    assert "steps=12 is not a multiple of the 5 blocks" in message
    assert message.startswith("  evaluate")


def test_weights_are_bounded_from_low_to_high():
    assert explained(WeightsConfig, low=1.3) == (
        "  the settings: low=1.3 is above high=1.2; swap them."
    )
    assert WeightsConfig(low=1.0, high=1.0).low == 1.0


@pytest.mark.parametrize("values", [{"source": "train.jsonl"}, {"evaluation_source": "test.jsonl"}])
def test_training_problems_need_their_evaluation(values):
    message = explained(DataConfig, **values)
    assert "set both or neither" in message
    assert "train.jsonl" in message or "test.jsonl" in message
    both = DataConfig(source="train.jsonl", evaluation_source="test.jsonl")
    assert both.evaluation_source == "test.jsonl"


@pytest.mark.parametrize("limit", ["num_train", "num_test"])
def test_all_problems_may_be_taken_where_there_is_an_end_of_them(limit):
    assert "there is no end of them; give numbers" in explained(DataConfig, **{limit: None})
    given = {"source": "gsm8k", "evaluation_source": "gsm8k", limit: None}
    config = PipelineConfig.model_validate({"data": given})
    assert getattr(config.data, limit) is None


@pytest.mark.parametrize("name", ["rollouts.num_prompts", "train.prompts_per_update"])
def test_more_problems_than_there_are_cannot_be_asked_for(name):
    section, field = name.split(".")
    message = explained(PipelineConfig, data={"num_train": 4}, **{section: {field: 5}})
    assert "data.num_train=4; lower the one or raise the other." in message
    few = {"rollouts": {"num_prompts": 4}, "train": {"prompts_per_update": 4}}
    assert PipelineConfig.model_validate({"data": {"num_train": 4}, **few}).data.num_train == 4
    few[section][field] = 5
    assert explained(PipelineConfig, data={"num_train": 4}, **few) == (
        f"  the settings: {name}=5 is more than data.num_train=4; lower the one or raise the other."
    )


def test_every_wrong_value_is_told_at_once():
    message = explained(PipelineConfig, train={"updates": 0, "seed": -1}, data={"num_test": 0})
    assert len(message.splitlines()) == 3


# --------------------------------------------------------------------------------- the file


def test_an_empty_file_is_the_defaults(yaml_file):
    for text in ("", "# nothing\n", "{}"):
        assert load_config(yaml_file(text)) == PipelineConfig()


def test_without_a_file_it_is_the_embedded_pipeline():
    assert load_config(None) == PipelineConfig()
    assert load_config(None, {"train.updates": 3}).train.updates == 3
    with pytest.raises(ConfigError, match=r"^the settings cannot be used:\n  train\.updates = 0: "):
        load_config(None, {"train.updates": 0})


def test_a_file_sets_what_it_names_and_an_override_comes_on_top(yaml_file):
    path = yaml_file("train:\n  updates: 3\n  seed: 4\n")
    config = load_config(path, {"train.seed": 5, "train.sampler.temperature": 0.5, "data.seed": 6})
    assert (config.train.updates, config.train.seed, config.data.seed) == (3, 5, 6)
    # What is not named keeps the default of its place, not that of any sampler.
    expected = TrainConfig().sampler.model_copy(update={"temperature": 0.5})
    assert config.train.sampler == expected
    assert load_config(path, {"train.sampler.steps": 40}).train.sampler.gen_length == 40


def test_a_section_in_part_keeps_the_rest_of_its_own_default():
    config = PipelineConfig.model_validate({"rollouts": {"sampler": {"temperature": 0.1}}})
    assert config.rollouts.sampler == SamplerConfig(
        gen_length=40, block_length=8, steps=40, temperature=0.1
    )
    whole = SamplerConfig(gen_length=64, steps=64)
    assert PipelineConfig.model_validate({"rollouts": {"sampler": whole}}).rollouts.sampler == whole


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(RequestError, match=rf"^config file {tmp_path}/no\.yaml does not exist; "):
        load_config(tmp_path / "no.yaml")
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["train: [1", "a: b: c", "\t- x", b"\xff\xfe\xfa", "\x00", "data: {seed: 2024-13-45}", "%x"],
)
def test_a_file_that_is_not_yaml_is_named_with_the_reason(yaml_file, text):
    path = yaml_file(text)
    with pytest.raises(ConfigError, match=rf"^config file {path} is not YAML \(.+\); see configs/"):
        load_config(path)


@pytest.mark.parametrize(("text", "kind"), [("- 1\n- 2", "list"), ("train", "str"), ("5", "int")])
def test_a_file_that_holds_no_sections_is_named(yaml_file, text, kind):
    path = yaml_file(text)
    with pytest.raises(ConfigError, match=f"^config file {path} holds a {kind}, not sections"):
        load_config(path)


def test_a_wrong_value_in_a_file_names_the_file(yaml_file):
    path = yaml_file("train:\n  updates: -1\n")
    with pytest.raises(ConfigError) as refusal:
        load_config(path)
    assert str(refusal.value) == (
        f"config file {path} cannot be used:\n  train.updates = -1: Input should be greater than 0"
    )


def test_an_override_below_a_value_is_refused(yaml_file):
    path = yaml_file("train:\n  updates: 3\n")
    with pytest.raises(ConfigError, match=r"^--set train\.updates\.x: 'updates' is a value, not"):
        load_config(path, {"train.updates.x": 1})
    with pytest.raises(ConfigError, match=r"train\.nonsense = 1: there is no such setting"):
        load_config(path, {"train.nonsense": 1})


def test_a_name_that_is_no_text_is_refused(yaml_file):
    with pytest.raises(ConfigError, match="1 = 1: Keys should be strings"):
        load_config(yaml_file("1: 2"))


def test_settings_need_no_torch():
    code = "import sys; import dtca_core.config; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_the_embedded_config_file_writes_out_the_defaults():
    assert load_config(CONFIGS / "embedded.yaml") == PipelineConfig()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_file_can_be_used(path):
    load_config(path)
