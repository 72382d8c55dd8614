"""Tests of resumable checkpoints: what comes back, what is kept, what is refused."""

import pytest
import torch
from torch import nn

from dtca_core.errors import TrainingError
from dtca_core.training.state import resume_state, save_state


def model_and_optimizer(width=3, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, width), nn.Linear(width, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def train(model, optimizer, updates=1):
    for _ in range(updates):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().sum().backward()
        optimizer.step()


def same(first, second):
    """Whether two models and their optimizers hold the same, to the bit."""
    weights = zip(first[0].parameters(), second[0].parameters(), strict=True)
    return all(
        torch.equal(a, b)
        and first[1].state[a].keys() == second[1].state[b].keys()
        and all(torch.equal(first[1].state[a][f], second[1].state[b][f]) for f in first[1].state[a])
        for a, b in weights
    )


def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    run = model_and_optimizer()
    train(*run, updates=3)
    save_state(tmp_path, 3, *run, keep_last=2)
    resumed = model_and_optimizer(seed=1)
    assert resume_state(tmp_path, *resumed) == 3
    assert same(run, resumed)
    steps = [resumed[1].state[weight]["step"] for weight in resumed[0].parameters()]
    assert all(step.item() == 3 for step in steps)
    train(*run)
    train(*resumed)
    assert same(run, resumed)


def test_without_a_checkpoint_nothing_is_touched(tmp_path):
    run, untouched = model_and_optimizer(), model_and_optimizer()
    assert resume_state(tmp_path / "none", *run) == 0
    assert same(run, untouched)
    assert not (tmp_path / "none").exists()


def test_a_run_that_has_not_learnt_yet_is_saved_too(tmp_path):
    run = model_and_optimizer()
    save_state(tmp_path, 1, *run, keep_last=1)
    resumed = model_and_optimizer(seed=1)
    assert resume_state(tmp_path, *resumed) == 1
    assert same(run, resumed)


def test_only_the_last_checkpoints_are_kept_and_the_newest_is_resumed(tmp_path):
    run = model_and_optimizer()
    for update in range(1, 13):
        train(*run)
        save_state(tmp_path, update, *run, keep_last=2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "update-00000011",
        "update-00000012",
    ]
    resumed = model_and_optimizer(seed=1)
    assert resume_state(tmp_path, *resumed) == 12
    assert same(run, resumed)


def test_a_checkpoint_that_was_not_finished_is_ignored_and_written_over(tmp_path):
    run = model_and_optimizer()
    train(*run)
    save_state(tmp_path, 1, *run, keep_last=2)
    saved = model_and_optimizer()
    resume_state(tmp_path, *saved)
    partial = tmp_path / ".partial-update-00000002"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half")
    (partial / "stray").write_bytes(b"half")
    resumed = model_and_optimizer(seed=1)
    assert resume_state(tmp_path, *resumed) == 1
    assert same(saved, resumed)
    train(*resumed)
    save_state(tmp_path, 2, *resumed, keep_last=2)
    assert not partial.exists()
    assert not (tmp_path / "update-00000002" / "stray").exists()
    assert resume_state(tmp_path, *model_and_optimizer()) == 2


def test_the_same_update_can_be_saved_again(tmp_path):
    run = model_and_optimizer()
    save_state(tmp_path, 1, *run, keep_last=1)
    train(*run)
    save_state(tmp_path, 1, *run, keep_last=1)
    resumed = model_and_optimizer(seed=1)
    assert resume_state(tmp_path, *resumed) == 1
    assert same(run, resumed)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run = model_and_optimizer()
    train(*run)
    save_state(tmp_path, 1, *run, keep_last=1)
    for other in (nn.Sequential(nn.Linear(2, 5)), nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))):
        optimizer = torch.optim.AdamW(other.parameters())
        with pytest.raises(TrainingError, match="holds the weights of another model"):
            resume_state(tmp_path, other, optimizer)


def test_optimizer_state_of_what_the_model_does_not_train_is_refused(tmp_path):
    run = model_and_optimizer()
    train(*run)
    save_state(tmp_path, 1, *run, keep_last=1)
    other, _ = model_and_optimizer()
    # The same weights, but one of them is a buffer here.
    bias = other[1].bias.detach()
    del other[1].bias
    other[1].register_buffer("bias", bias)
    with pytest.raises(TrainingError, match=r"optimizer state of '1\.bias'"):
        resume_state(tmp_path, other, torch.optim.AdamW(other.parameters()))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "half"])
def test_a_checkpoint_that_lacks_something_is_refused(tmp_path, name, damage):
    run = model_and_optimizer()
    train(*run)
    save_state(tmp_path, 1, *run, keep_last=1)
    file = tmp_path / "update-00000001" / name
    content = file.read_bytes()
    file.unlink()
    if damage == "half":
        file.write_bytes(content[: len(content) // 2])
    with pytest.raises(TrainingError, match="update-00000001 cannot be resumed"):
        resume_state(tmp_path, *model_and_optimizer())
