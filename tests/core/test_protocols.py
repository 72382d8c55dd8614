"""Tests of protocols: what the model is asked, and that config and protocols agree."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import Budget, EvaluateConfig, SamplerConfig
from dtca_core.data.problems import Problem
from dtca_core.errors import ConfigError, ModelError
from dtca_core.evaluation.answers import examination
from dtca_core.evaluation.extraction import stated_answer
from dtca_core.evaluation.protocols import PROTOCOLS, QUESTION, find_setup, task_of
from dtca_core.evaluation.shots import GSM8K_SHOTS
from dtca_core.models.chat import encode_between, encode_prompt

SETUPS = [(name, task) for name in PROTOCOLS for task in ("math", "gsm8k")]


def problem(answer):
    return Problem(problem_id="0", question="What?", answer=answer, kind="file")


def test_the_config_offers_every_protocol_and_no_other():
    offered = get_args(EvaluateConfig.model_fields["protocol"].annotation)
    assert set(offered) == set(PROTOCOLS)


@pytest.mark.parametrize(("name", "task"), SETUPS)
def test_a_protocol_is_complete(name, task):
    assert PROTOCOLS[name].name == name
    assert PROTOCOLS[name].source
    setup = find_setup(name, task)
    assert setup.prompt.instruction.count(QUESTION) == 1
    if setup.prompt.template is not None:
        assert setup.prompt.template.count(QUESTION) == 1
        assert not setup.prompt.shots
    assert setup.sampler.temperature == 0.0
    for budget in setup.budgets:
        setup.sampler.at(budget)  # the blocks fit
    lengths = {budget.gen_length for budget in setup.budgets}
    for known in setup.expected:
        assert known.gen_length in lengths
        assert 0 < known.percent < 100
        assert known.source


def settings_of(name, task):
    setup = find_setup(name, task)
    return (
        [(budget.gen_length, budget.steps) for budget in setup.budgets],
        setup.sampler.block_length,
        setup.sampler.threshold,
        setup.sampler.cache,
    )


def test_the_published_settings_are_these():
    # Section 5 of the field report; d1 commits two tokens a step, the others one.
    halves = [(128, 64), (256, 128), (512, 256)]
    wholes = [(128, 128), (256, 256), (512, 512)]
    for task in ("math", "gsm8k"):
        assert settings_of("d1", task) == (halves, 32, None, "none")
        assert settings_of("drift", task) == (wholes, 32, 0.9, "prefix")
    assert settings_of("llada", "math") == ([(512, 512)], 64, None, "none")
    assert settings_of("llada", "gsm8k") == ([(256, 256)], 8, None, "none")


def test_the_published_numbers_are_these():
    numbers = {
        (name, task): [known.percent for known in find_setup(name, task).expected]
        for name, task in SETUPS
    }
    assert numbers == {
        ("plain", "math"): [],
        ("plain", "gsm8k"): [],
        ("drift", "math"): [],
        ("drift", "gsm8k"): [],
        ("d1", "math"): [26.0, 32.4, 36.2],
        ("d1", "gsm8k"): [68.7, 76.7, 78.2],
        ("llada", "math"): [42.7],
        ("llada", "gsm8k"): [78.9],
    }


def test_the_two_prompts_of_d1_differ_in_a_space_and_a_stray_quote():
    # As read in eval/gsm8k.py and eval/math500.py of three copies of d1, which agree.
    math, gsm8k = (find_setup("d1", task).prompt.message("1 + 1?") for task in ("math", "gsm8k"))
    assert gsm8k.endswith("\n</answer>\n\n1 + 1?")
    assert math.endswith('\n</answer>" \n\n\n1 + 1?')
    assert "\\boxed{}. \nRespond" in gsm8k
    assert "\\boxed{}.\nRespond" in math


def test_the_examples_of_a_prompt_are_turns():
    prompt = find_setup("llada", "gsm8k").prompt
    chat = prompt.chat("What is 2 + 3?")
    assert [message["role"] for message in chat] == ["user", "assistant"] * 4 + ["user"]
    assert chat[0]["content"].startswith("Question: A baker")
    assert chat[-1]["content"] == "Question: What is 2 + 3?\nLet's think step by step\nAnswer:"
    for shot in GSM8K_SHOTS:
        assert stated_answer(shot.answer) == shot.answer.split()[-1]


@given(st.text())
def test_any_question_is_asked_as_it_stands(question):
    for name, task in SETUPS:
        assert question in find_setup(name, task).prompt.chat(question)[-1]["content"]


def test_braces_and_the_placeholder_itself_may_stand_in_a_question():
    question = "Is {question} in \\{1, {2}\\}?"
    assert find_setup("plain", "math").prompt.message(question) == question


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="'d2' does not exist; use one of d1, drift, llada"):
        find_setup("d2", "math")


def test_the_task_is_that_of_all_references_together():
    assert task_of(["18", "70,000", "-1/2", "2.5"]) == "gsm8k"
    assert task_of(["18"] * 99 + ["None"]) == "gsm8k"
    assert task_of(["18", "\\frac{1}{2}"]) == "math"
    assert task_of(["18", "5 \\text{ cm}"]) == "math"


def test_a_prefill_follows_what_the_template_adds(tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    messages = [{"role": "user", "content": "What?"}]
    plain = tokenizer.decode(encode_prompt(tokenizer, messages))
    assert tokenizer.decode(encode_prompt(tokenizer, messages, "<r>")) == f"{plain}<r>"


def test_a_template_is_encoded_with_its_special_tokens(tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    ids = encode_between(tokenizer, "<|startoftext|>", "Hi", "<|eot_id|>\n")
    assert ids[0] == tokenizer.convert_tokens_to_ids("<|startoftext|>")
    assert tokenizer.convert_tokens_to_ids("<|eot_id|>") in ids
    with pytest.raises(ModelError, match=r"needs the special token <\|im_start\|>"):
        encode_between(tokenizer, "<|im_start|>", "Hi", "")
    with pytest.raises(ModelError, match="no tokenizer"):
        encode_between(None, "", "Hi", "")


def test_a_protocol_brings_its_own_settings():
    exam = examination(EvaluateConfig(protocol="d1"), [problem("18"), problem("\\frac12")])
    assert exam.task == "math"
    assert exam.budgets == find_setup("d1", "math").budgets
    assert exam.is_published


def test_other_settings_are_told_from_the_protocols_own():
    own = find_setup("d1", "gsm8k")
    problems = [problem("18")]

    def is_published(sampler, budgets):
        config = EvaluateConfig(protocol="d1", sampler=sampler, budgets=budgets)
        return examination(config, problems).is_published

    assert is_published(own.sampler, own.budgets[:1])
    assert not is_published(own.sampler, (Budget(gen_length=128, steps=128),))
    assert not is_published(SamplerConfig(gen_length=256, block_length=64), own.budgets)
    fewer = own.sampler.model_copy(update={"cache": "prefix"})
    assert not is_published(fewer, own.budgets)


def test_a_sampler_alone_and_budgets_alone_have_to_fit_the_rest_of_the_protocol():
    budget = Budget(gen_length=64, steps=32)
    exam = examination(EvaluateConfig(protocol="d1", budgets=(budget,)), [problem("18")])
    assert exam.sampler == find_setup("d1", "gsm8k").sampler
    sampler = SamplerConfig(gen_length=256, block_length=64)
    exam = examination(EvaluateConfig(protocol="d1", sampler=sampler), [problem("18")])
    assert exam.budgets == find_setup("d1", "gsm8k").budgets
    with pytest.raises(ValueError, match="gen_length=48 is not a multiple of block_length=32"):
        EvaluateConfig(protocol="d1", budgets=(Budget(gen_length=48, steps=24),))
    with pytest.raises(ValueError, match="gen_length=128 is not a multiple of block_length=256"):
        EvaluateConfig(protocol="d1", sampler=SamplerConfig(gen_length=256, block_length=256))
