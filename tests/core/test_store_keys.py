"""Tests of keys: golden ones, then what may and may not change them."""

import json
import subprocess
import sys
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import ConfigError
from dtca_core.store import artifact_key, canonical_json

scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
finite = scalars.filter(lambda value: value not in (float("inf"), -float("inf")))
values = st.recursive(
    finite, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def reversed_keys(value):
    """Return an equal value whose mappings were filled in the opposite order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value


def test_golden_keys():
    # By hand, with printf and sha256sum, of
    # {"config":{"high":1.2,"low":0.8},"inputs":{"contribution":"0123..."},"kind":"weights",
    # "version":1} and {"config":{},"inputs":{},"kind":"dataset","version":3}, without spaces.
    inputs = {"contribution": "0123456789abcdef" * 2}
    assert (
        artifact_key("weights", 1, {"low": 0.8, "high": 1.2}, inputs)
        == "c16ac021893645df48a6d0abbce1f970"
    )
    assert artifact_key("dataset", 3, {}, {}) == "9da45cdd9b8fd63ba7d5e3740fb435ce"


def test_canonical_json_is_sorted_compact_and_ascii():
    value = {"b": [1, 1.0, True, None], "a": MappingProxyType({"é": (0.1,)})}
    assert canonical_json(value) == '{"a":{"\\u00e9":[0.1]},"b":[1,1.0,true,null]}'


@given(values)
def test_the_order_of_keys_changes_nothing_and_nothing_is_lost(value):
    text = canonical_json(value)
    assert canonical_json(reversed_keys(value)) == text
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "changed",
    [
        ("rollouts", 1, {"seed": 0}, {"dataset": "aa"}),
        ("weights", 2, {"seed": 0}, {"dataset": "aa"}),
        ("weights", 1, {"seed": 1}, {"dataset": "aa"}),
        ("weights", 1, {"seed": 0, "low": None}, {"dataset": "aa"}),
        ("weights", 1, {"seed": 0}, {"dataset": "bb"}),
        ("weights", 1, {"seed": 0}, {"model": "aa"}),
        ("weights", 1, {"seed": 0}, {}),
    ],
)
def test_each_part_is_in_the_key(changed):
    assert artifact_key(*changed) != artifact_key("weights", 1, {"seed": 0}, {"dataset": "aa"})


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"train": {"rates": [0.1, float("nan")]}}, r"value\.train\.rates\[1\] is nan"),
        ({"limit": float("-inf")}, r"value\.limit is -inf"),
        ({"steps": {8: "a"}}, r"value\.steps has the key 8, a int"),
        ({"kinds": {"a", "b"}}, r"value\.kinds is {"),
        ({"raw": b"a"}, r"value\.raw is b'a'"),
    ],
)
def test_what_json_would_bend_is_refused_by_its_name(value, name):
    with pytest.raises(ConfigError, match=name):
        canonical_json(value)


def test_the_store_needs_neither_torch_nor_prefect():
    code = (
        "import sys, dtca_core.store; assert not {'torch', 'prefect', 'polars'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
