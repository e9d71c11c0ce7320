"""PyTorch: states are captured and restored by name, where it is installed; elsewhere one sentence says that it is not."""

from __future__ import annotations

import importlib.util

import pytest
from sdk_cases import checkpoints

from sublet_sdk import torch_state
from sublet_sdk.faults import CorruptCheckpoint, SettingFault

INSTALLED = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(INSTALLED, reason="PyTorch is installed here")
def test_without_pytorch() -> None:
    with pytest.raises(SettingFault, match="torch: is not installed; install PyTorch"):
        torch_state.capture(model=None)


@pytest.mark.skipif(not INSTALLED, reason="needs PyTorch: pip install torch")
def test_a_model_and_its_optimizer_come_back() -> None:
    import torch

    def parts():  # type: ignore[no-untyped-def]
        model = torch.nn.Linear(2, 1)
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    model, optimizer = parts()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    store = checkpoints()
    store.save(torch_state.capture(model=model, optimizer=optimizer), step=1)
    loaded, (other, other_optimizer) = store.load(), parts()
    assert loaded is not None
    torch_state.restore(loaded, model=other, optimizer=other_optimizer)
    assert torch.equal(other.weight, model.weight)
    with pytest.raises(CorruptCheckpoint, match="has no state of scheduler"):
        torch_state.restore(loaded, scheduler=other)


def test_a_checkpoint_without_a_torch_file() -> None:
    if not INSTALLED:
        pytest.skip("needs PyTorch: pip install torch")
    store = checkpoints()
    store.save({"other": b""}, step=1)
    loaded = store.load()
    assert loaded is not None
    with pytest.raises(CorruptCheckpoint, match=r"has no file torch\.pt"):
        torch_state.restore(loaded)
