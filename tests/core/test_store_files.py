"""Tests of files that appear whole or not at all."""

import json
import os

import pytest

from dtca_core.errors import DataError
from dtca_core.store import write_atomic, write_json


def test_a_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "sub" / "summary.json"
    write_atomic(path, b"old")
    seen = []

    def look(source, target):
        seen.append((os.path.basename(source), path.read_bytes()))
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", look)
    write_atomic(path, b"new")
    assert seen == [(".summary.json.partial", b"old")]
    assert path.read_bytes() == b"new"
    assert [file.name for file in path.parent.iterdir()] == ["summary.json"]


def test_json_is_indented_in_the_order_given_and_escapes_what_is_not_ascii(tmp_path):
    path = tmp_path / "weights.json"
    value = {"b": [1, 0.5], "a": "a\ud800b"}
    write_json(path, value)
    assert path.read_bytes().endswith(b'\n  "a": "a\\ud800b"\n}\n')
    assert json.loads(path.read_text()) == value
    assert path.read_text().index('"b"') < path.read_text().index('"a"')


@pytest.mark.parametrize("value", [{"mean": float("nan")}, {"names": {"a"}}])
def test_what_json_cannot_hold_is_refused_before_the_file_is_opened(tmp_path, value):
    with pytest.raises(DataError, match=r"metrics\.json was not written"):
        write_json(tmp_path / "metrics.json", value)
    assert not list(tmp_path.iterdir())
