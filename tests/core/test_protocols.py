"""Tests of protocols: what the model is asked, and that config and protocols agree."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import EvaluateConfig
from dtca_core.errors import ConfigError
from dtca_core.evaluation.extraction import EXTRACTIONS
from dtca_core.evaluation.protocols import PROTOCOLS, find_protocol


def test_the_config_offers_every_protocol_and_no_other():
    offered = get_args(EvaluateConfig.model_fields["protocol"].annotation)
    assert set(offered) == set(PROTOCOLS)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_complete(name):
    protocol = find_protocol(name)
    assert protocol.name == name
    assert protocol.extraction in EXTRACTIONS
    assert protocol.instruction.count("{question}") == 1
    assert protocol.source
    assert all(0 <= accuracy <= 100 for accuracy in protocol.expected.values())


def test_plain_asks_the_question_alone():
    assert PROTOCOLS["plain"].message("What is 2 + 3?") == [
        {"role": "user", "content": "What is 2 + 3?"}
    ]


def test_drift_asks_for_a_box_and_then_the_question():
    content = PROTOCOLS["drift"].message("What is 2 + 3?")[0]["content"]
    assert content == "Solve this problem and put its final answer in \\boxed{}.\nWhat is 2 + 3?"


@given(st.text())
def test_any_question_is_asked_as_it_stands(question):
    for protocol in PROTOCOLS.values():
        (message,) = protocol.message(question)
        assert message["content"].endswith(question)


def test_braces_and_the_placeholder_itself_may_stand_in_a_question():
    question = "Is {question} in \\{1, {2}\\}?"
    assert PROTOCOLS["plain"].message(question)[0]["content"] == question


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="'llada' does not exist; use one of drift, plain"):
        find_protocol("llada")
