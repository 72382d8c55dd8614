"""Tests of the store: publish and find, damage, references, upkeep."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dtca_core.errors import ArtifactError, ConfigError
from dtca_core.store import FileRecord, Provenance, Store, artifact_key, content_digest

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "artifacts")


def provenance(kind="weights", seed=0, inputs=(), **changes):
    records = {artifact.kind: artifact.input_record for artifact in inputs}
    contents = {name: record.content for name, record in records.items()}
    values = {
        "kind": kind,
        "key": artifact_key(kind, 1, {"seed": seed}, contents),
        "version": 1,
        "code": "c0de",
        "git_commit": None,
        "config": {"seed": seed},
        "execution": {"seed": seed, "batch_size": 8},
        "inputs": records,
        "packages": {"pyarrow": "26.0.1"},
        "device": "cpu",
        "dtype": "float32",
        "seed": seed,
        "started": NOON + timedelta(minutes=seed),
        "seconds": 1.5,
        "counts": {"rows": 3, "mean": 0.5},
    }
    return Provenance(**(values | changes))


def build(store, files=None, **what):
    """Publish an artifact of these files and return it."""
    origin = provenance(**what)
    work = store.work_folder(origin.kind, origin.key)
    for name, text in (files or {"weights.json": "{}", "shards/0.parquet": "rows"}).items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    return store.publish(origin)


def edit_manifest(artifact, change):
    path = artifact.path / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


# Publish and find


def test_what_was_published_is_found(store):
    assert store.find("weights", provenance().key) is None
    artifact = build(store)
    assert artifact.path == store.root / "weights" / artifact.key
    assert artifact.reference == f"weights/{artifact.key[:12]}"
    assert store.find("weights", artifact.key) == artifact
    assert [file.path for file in artifact.manifest.files] == ["shards/0.parquet", "weights.json"]
    assert (store.root / "weights" / "latest").read_text().strip() == artifact.key
    visible = {path.name for path in (store.root / "weights").iterdir()}
    assert visible == {artifact.key, "latest", ".locks"}


def test_the_manifest_is_readable_and_says_all_that_the_caller_said(store):
    origin = provenance()
    artifact = build(store)
    said = json.loads((artifact.path / "manifest.json").read_text())
    assert said["started"] == "2026-07-01T12:00:00Z"
    assert {name: getattr(artifact.manifest, name) for name in type(origin).model_fields} == dict(
        origin
    )


def test_temporary_files_are_not_published_and_a_work_folder_is_kept(store):
    origin = provenance()
    work = store.work_folder("weights", origin.key)
    (work / "a.json").write_text("{}")
    (work / ".b.json.partial").write_text("half")
    (work / "manifest.json").write_text("left by a killed build")
    assert store.work_folder("weights", origin.key) == work
    assert {path.name for path in work.iterdir()} == {"a.json", ".b.json.partial"}
    assert [file.path for file in store.publish(origin).manifest.files] == ["a.json"]


def test_logs_are_kept_and_verified_but_do_not_count_as_content(store):
    first = build(store, {"a.json": "1", "logs/time.txt": "3 s"}, seed=0)
    second = build(store, {"a.json": "1", "logs/time.txt": "4 s"}, seed=1)
    assert first.content == second.content
    assert build(store, {"a.json": "1", "more.txt": "3 s"}, seed=2).content != first.content
    (second.path / "logs/time.txt").write_text("5 s")
    assert [str(damage) for damage in store.damage(second)] == [
        "logs/time.txt: altered: SHA-256 differs"
    ]


@given(st.permutations([FileRecord(path=p, size=1, sha256="a" * 64) for p in "bca"]))
def test_content_does_not_depend_on_the_order_of_files(files):
    assert content_digest(files) == content_digest(files[::-1])


def test_the_same_content_is_left_in_place(store):
    artifact = build(store, seconds=1.0)
    later = build(store, seed=1)
    again = build(store, seconds=2.0)
    assert again == artifact
    assert store.resolve("weights", "latest") == artifact
    assert store.artifacts() == [artifact, later]
    assert not store.leftovers()


def test_other_content_of_the_same_key_replaces_it(store):
    build(store, {"a.json": "1"})
    replaced = build(store, {"a.json": "2"})
    assert (replaced.path / "a.json").read_text() == "2"
    assert store.find("weights", replaced.key) == replaced


def test_publishing_needs_a_work_folder_and_plain_files(store):
    origin = provenance()
    with pytest.raises(ArtifactError, match="nothing to publish"):
        store.publish(origin)
    work = store.work_folder("weights", origin.key)
    (work / "link.json").symlink_to("/etc/hostname")
    with pytest.raises(ArtifactError, match=r"link\.json is a link or a special file"):
        store.publish(origin)


def test_a_key_that_does_not_follow_from_its_config_is_refused():
    with pytest.raises(ValidationError, match="does not follow"):
        provenance(key="0" * 32)


@pytest.mark.parametrize(("kind", "key"), [("../weights", "0" * 32), ("weights", "../0")])
def test_names_that_are_no_names_are_refused(store, kind, key):
    with pytest.raises(ArtifactError, match="is not a"):
        store.find(kind, key)


@pytest.mark.parametrize("root", ["s3://bucket/artifacts", Path("s3://bucket"), "file:///tmp/a"])
def test_a_url_is_refused_as_root(root):
    with pytest.raises(ConfigError, match=r"is a URL.*DTCA_ARTIFACTS"):
        Store(root)


def test_a_root_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "artifacts")
    for write in (store.work_folder, lambda *name: store.locked(*name).__enter__()):
        with pytest.raises(ArtifactError, match=r"file/artifacts: .*set DTCA_ARTIFACTS"):
            write("weights", provenance().key)
    assert store.find("weights", provenance().key) is None
    assert store.artifacts() == []


def test_a_full_disk_is_an_artifact_error_and_leaves_what_was_there(store, monkeypatch):
    artifact = build(store)

    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(ArtifactError, match="No space left on device"):
            build(store, seed=1)
    assert store.artifacts() == [artifact]
    assert store.resolve("weights", "latest") == artifact
    assert build(store, seed=1) == store.resolve("weights", "latest")


def test_an_error_inside_the_lock_stays_what_it_is(store):
    with pytest.raises(OSError, match="of the caller"), store.locked("weights", "0" * 32):
        raise OSError("of the caller")


# Damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def swap_for_a_folder(path):
    path.unlink()
    path.mkdir()


def link_inside(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


DAMAGES = {
    "weights.json: altered: SHA-256 differs": flip,
    "weights.json: truncated: 1 of 2 bytes": lambda path: path.write_text("{"),
    "weights.json: grown: 3 bytes instead of 2": lambda path: path.write_text("{ }"),
    "weights.json: missing": lambda path: path.unlink(),
    "weights.json: not a plain file": swap_for_a_folder,
    "extra.json: not in the manifest": lambda path: path.with_name("extra.json").touch(),
}


@pytest.mark.parametrize("problem", DAMAGES)
def test_damage_is_named_never_found_and_repaired_by_building_again(store, problem):
    artifact = build(store)
    DAMAGES[problem](artifact.path / "weights.json")
    assert [str(damage) for damage in store.damage(artifact)] == [problem]
    assert store.find("weights", artifact.key) is None
    with pytest.raises(ArtifactError, match=f"{problem}.*dtca artifacts verify"):
        store.resolve("weights", "latest")
    (verdict,) = store.verify()
    assert verdict.reference == artifact.reference
    assert [str(damage) for damage in verdict.damages] == [problem]
    assert build(store) == store.find("weights", artifact.key)


def test_a_file_that_cannot_be_read_is_damage(store, monkeypatch):
    artifact = build(store, {"a.json": "1"})

    def broken(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("dtca_core.store.damage.sha256_of", broken)
    assert [str(damage) for damage in store.damage(artifact)] == [
        "a.json: unreadable: Input/output error"
    ]


def test_a_link_within_the_artifact_is_damage_too(store):
    artifact = build(store)
    link_inside(artifact.path / "weights.json")
    assert "weights.json: not a plain file" in map(str, store.damage(artifact))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["config"].update(seed=9), "does not follow from kind"),
        (lambda m: m.update(content="0" * 32), "does not follow from the files"),
        (lambda m: m["files"][0].update(size=9), "does not follow from the files"),
        (lambda m: m["files"].reverse(), "not sorted"),
        (lambda m: m.update(format=2), "format: Input should be 1"),
        (lambda m: m.update(surprise=1), "surprise: Extra inputs"),
        (lambda m: m.pop("device"), "device: Field required"),
        (lambda m: m["config"].update(seed=float("nan")), "config.seed is nan"),
    ],
)
def test_an_altered_manifest_is_never_believed(store, change, message):
    artifact = build(store)
    edit_manifest(artifact, change)
    assert store.find("weights", artifact.key) is None
    assert store.artifacts() == []
    with pytest.raises(ArtifactError, match=rf"manifest\.json is not a manifest: .*{message}"):
        store.resolve("weights", artifact.key)
    (damage,) = store.verify()[0].damages
    assert damage.path == "manifest.json"
    assert build(store) == store.find("weights", artifact.key)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_torn_manifest_is_never_believed(store, content):
    artifact = build(store)
    (artifact.path / "manifest.json").write_bytes(content)
    assert store.find("weights", artifact.key) is None
    with pytest.raises(ArtifactError, match="is not a manifest"):
        store.resolve("weights", "latest")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/", "", ".", "manifest.json", "\0"],
)
def test_a_path_that_leaves_the_artifact_is_refused(store, path):
    artifact = build(store, {"a.json": "1"})
    edit_manifest(artifact, lambda manifest: manifest["files"][0].update(path=path))
    assert store.find("weights", artifact.key) is None
    with pytest.raises(ArtifactError, match=r"manifest\.json is not a manifest: files\.0\.path"):
        store.resolve("weights", str(artifact.path))


def test_a_link_that_leaves_the_artifact_is_refused(store, tmp_path):
    artifact = build(store)
    (artifact.path / "shards").rename(tmp_path / "shards")
    (artifact.path / "shards").symlink_to(tmp_path / "shards")
    assert store.find("weights", artifact.key) is None
    with pytest.raises(ArtifactError, match="is a link out of the artifact"):
        store.resolve("weights", artifact.key)


def test_a_manifest_in_the_wrong_place_is_not_believed(store):
    artifact = build(store)
    elsewhere = artifact.path.with_name("0" * 32)
    artifact.path.rename(elsewhere)
    assert store.find("weights", "0" * 32) is None
    with pytest.raises(ArtifactError, match=f"belongs in {artifact.path}"):
        store.resolve("weights", "0000")


# References


def test_latest_is_the_last_published(store):
    with pytest.raises(ArtifactError, match="holds no weights artifact yet"):
        store.resolve("weights", "latest")
    newer, older = build(store, seed=5), build(store, seed=1)
    assert store.resolve("weights", "latest") == older
    assert store.artifacts("weights") == [older, newer]


@pytest.mark.parametrize("pointer", [None, "0" * 32, "../../etc", "", "\xe9"])
def test_latest_falls_back_to_the_newest(store, pointer):
    newer, _older = build(store, seed=5), build(store, seed=1)
    path = store.root / "weights" / "latest"
    path.unlink() if pointer is None else path.write_bytes(pointer.encode("latin-1"))
    assert store.resolve("weights", "latest") == newer
    assert store.resolve("weights", "weights/latest") == newer


def test_a_key_or_its_prefix_is_enough(store):
    artifact = build(store)
    for length in (4, 12, 32):
        assert store.resolve("weights", artifact.key[:length]) == artifact
        assert store.resolve("weights", f"weights/{artifact.key[:length]}") == artifact


def test_an_ambiguous_prefix_lists_both(store):
    artifact = build(store)
    twin = artifact.path.with_name(artifact.key[:8] + "0" * 24)
    twin.mkdir()
    assert store.resolve("weights", artifact.key[:8]) == artifact
    (twin / "manifest.json").touch()
    with pytest.raises(ArtifactError, match="start of 2 weights artifacts") as caught:
        store.resolve("weights", artifact.key[:8])
    assert artifact.key in str(caught.value)
    assert twin.name in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("ffff", "no weights artifact has a key that starts with 'ffff'"),
        ("abc", "'abc' is neither 'latest'"),
        ("", "'' is neither 'latest'"),
        ("missing.json", "the path missing.json does not exist"),
        ("some/folder", "the path some/folder does not exist"),
        ("rollouts/0123abcd", "the path rollouts/0123abcd does not exist"),
    ],
)
def test_what_means_nothing_is_told_with_what_exists(store, reference, message):
    with pytest.raises(ArtifactError, match="holds no weights artifact yet"):
        store.resolve("weights", reference)
    artifact = build(store, {"a": "1"})
    with pytest.raises(ArtifactError, match=message) as caught:
        store.resolve("weights", reference)
    assert artifact.reference in str(caught.value)


def test_a_path_to_an_artifact_is_that_artifact(store, tmp_path):
    artifact = build(store)
    assert store.resolve("weights", str(artifact.path)) == artifact
    moved = artifact.path.rename(tmp_path / "copy")
    assert store.resolve("weights", str(moved)).key == artifact.key
    with pytest.raises(ArtifactError, match="is a weights artifact and a rollouts artifact is"):
        store.resolve("rollouts", str(moved))


def test_a_file_that_a_person_made_is_known_by_its_content(store, tmp_path):
    path, copy, other = (tmp_path / name for name in ("weights.json", "mine.json", "mine.txt"))
    for each in (path, copy, other):
        each.write_text('{"NUM": 1.2}')
    external = store.resolve("weights", str(path))
    assert (external.path, external.manifest) == (path, None)
    assert external.key == external.content
    assert store.damage(external) == []
    assert store.resolve("weights", str(copy)).content == external.content
    assert store.resolve("weights", str(other)).content != external.content
    path.write_text('{"NUM": 1.1}')
    assert store.resolve("weights", str(path)).content != external.content
    assert [str(damage) for damage in store.damage(external)] == [
        "weights.json: altered: content differs"
    ]
    path.unlink()
    assert [str(damage) for damage in store.damage(external)] == ["weights.json: missing"]


def test_a_folder_that_a_person_made_counts_by_what_is_not_hidden(store, tmp_path):
    folder, elsewhere = tmp_path / "model", tmp_path / "blob"
    folder.mkdir()
    with pytest.raises(ArtifactError, match="is empty"):
        store.resolve("model", str(folder))
    elsewhere.write_text("weights")
    (folder / "model.safetensors").symlink_to(elsewhere)  # as in the hub's cache
    content = store.resolve("model", str(folder)).content
    (folder / ".DS_Store").touch()
    assert store.resolve("model", str(folder)).content == content
    elsewhere.write_text("other weights")
    assert store.resolve("model", str(folder)).content != content
    elsewhere.unlink()
    with pytest.raises(ArtifactError, match=r"model\.safetensors is not a file"):
        store.resolve("model", str(folder))


def test_a_hexadecimal_name_may_still_be_a_file(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("beef").write_text("{}")
    assert store.resolve("weights", "beef").path == tmp_path / "beef"


# Upkeep


def test_verify_reports_folders_without_manifest_and_strangers(store):
    artifact = build(store)
    (artifact.path.with_name("ab" * 16)).mkdir()
    artifact.path.with_name("notes").mkdir()
    verdicts = {verdict.path.name: verdict.damages for verdict in store.verify("weights")}
    assert verdicts.keys() == {artifact.key, "ab" * 16, "notes"}
    assert verdicts[artifact.key] == ()
    for name in ("ab" * 16, "notes"):
        assert [str(damage) for damage in verdicts[name]] == ["manifest.json: missing"]
    assert store.artifacts() == [artifact]


def test_leftovers_are_what_nobody_works_in(store):
    build(store)
    key = provenance(seed=1).key
    work = store.work_folder("weights", key)
    (work.parent / ".building-notes").mkdir()
    with store.locked("weights", key):
        assert store.leftovers() == []
        waiting = Store(store.root)
        with pytest.raises(ArtifactError, match="is being built by another process"):
            waiting.remove(work)
    assert store.leftovers() == [work]
    store.remove(work)
    assert store.leftovers() == []
    assert not work.exists()


def test_unreferenced_is_what_no_latest_was_made_from(store):
    dataset = build(store, kind="dataset")
    idle = build(store, kind="dataset", seed=1)
    rollouts = build(store, kind="rollouts", inputs=[dataset])
    build(store, kind="weights", inputs=[rollouts])
    last = build(store, kind="dataset", seed=2)
    assert store.unreferenced() == [idle]
    build(store, kind="rollouts", inputs=[last], seed=3)
    assert store.unreferenced() == [idle], "the weights still rest on the first rollouts"
    build(store, kind="weights", inputs=[last], seed=4)
    assert {a.key for a in store.unreferenced()} >= {dataset.key, idle.key, rollouts.key}


def test_remove_takes_an_artifact_out_of_sight_before_it_deletes(store, monkeypatch):
    artifact, kept = build(store), build(store, seed=1)

    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            store.remove(artifact)
    assert store.artifacts() == [kept]
    (left,) = store.leftovers()
    assert left.name == f".removing-{artifact.key}"
    store.remove(left)
    assert not left.exists()
    with pytest.raises(ArtifactError, match="does not exist"):
        store.remove(artifact)


def test_remove_leaves_alone_what_is_not_in_the_store(store, tmp_path):
    build(store)
    outside = tmp_path / "model"
    outside.mkdir()
    for path in (outside, store.root / "weights", store.root / "weights" / ".locks", tmp_path):
        with pytest.raises(ArtifactError, match="is not an artifact of the store"):
            store.remove(path)
        assert path.exists()


def test_latest_survives_the_removal_of_what_it_names(store):
    first, second = build(store), build(store, seed=1)
    store.remove(second)
    assert store.resolve("weights", "latest") == first
