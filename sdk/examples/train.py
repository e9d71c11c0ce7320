"""Trains a small network on two spirals, and may be stopped at any step: run again, it goes on where it was.

As a TrainingJob with `spec.checkpoint` it needs no option; the environment says where checkpoints are. By hand:

    SUBLET_CHECKPOINT_URL=/tmp/checkpoints SUBLET_JOB_NAMESPACE=me SUBLET_JOB_NAME=spirals python train.py
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
import time

import numpy as np

from sublet_sdk import CheckpointFault, Loaded, Session

STOPPED = 143
"""Exit status after a notice, as of SIGTERM: the job is not done."""


class Network:
    """Two inputs, 32 hidden units, one output; trained by momentum on batches that a generator of its own draws."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        angle = np.sqrt(np.linspace(0.02, 1.0, 200)) * 3 * np.pi
        spiral = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / (3 * np.pi)
        self.inputs = np.concatenate([spiral, -spiral])
        self.wanted = np.concatenate([np.zeros(200), np.ones(200)])
        self.weights = [self.random.normal(size=(2, 32)), np.zeros(32), self.random.normal(size=32) / 6, np.zeros(1)]
        self.momentum = [np.zeros_like(each) for each in self.weights]

    def step(self) -> None:
        """One batch of 64."""
        rows = self.random.integers(len(self.inputs), size=64)
        inputs, wanted = self.inputs[rows], self.wanted[rows]
        hidden, guess = self._guess(inputs)
        error = (guess - wanted) / len(rows)
        back = np.outer(error, self.weights[2]) * (1 - hidden**2)
        slopes = [inputs.T @ back, back.sum(axis=0), hidden.T @ error, np.array([error.sum()])]
        for weight, momentum, slope in zip(self.weights, self.momentum, slopes, strict=True):
            momentum *= 0.9
            momentum -= 0.3 * slope
            weight += momentum

    def loss(self) -> float:
        """Mean cross-entropy over all points."""
        guess = np.clip(self._guess(self.inputs)[1], 1e-12, 1 - 1e-12)
        return float(-np.mean(np.where(self.wanted == 1, np.log(guess), np.log(1 - guess))))

    def _guess(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = np.tanh(inputs @ self.weights[0] + self.weights[1])
        return hidden, 1 / (1 + np.exp(-(hidden @ self.weights[2] + self.weights[3])))

    def capture(self) -> dict[str, bytes]:
        """All that the next step depends on: weights, momentum, and where the generator is."""
        arrays = io.BytesIO()
        parts = {f"weight{number}": each for number, each in enumerate(self.weights)}
        parts |= {f"momentum{number}": each for number, each in enumerate(self.momentum)}
        np.savez(arrays, allow_pickle=False, **parts)
        return {"arrays.npz": arrays.getvalue(), "random.json": json.dumps(self.random.bit_generator.state).encode()}

    def restore(self, loaded: Loaded) -> int:
        """Takes the state of a checkpoint; returns its step."""
        with np.load(io.BytesIO(loaded.files["arrays.npz"]), allow_pickle=False) as arrays:
            self.weights = [arrays[f"weight{number}"] for number in range(4)]
            self.momentum = [arrays[f"momentum{number}"] for number in range(4)]
        self.random.bit_generator.state = json.loads(loaded.files["random.json"])
        return loaded.checkpoint.step


def train(steps: int, step_seconds: float) -> int:
    """Exit status: 0 once all steps are done."""
    network = Network(seed=7)
    # One of the workers saves; the others load the same.
    with Session.from_environment(network.capture, saves=os.environ.get("RANK", "0") == "0") as session:
        loaded = session.restore()
        done = network.restore(loaded) if loaded is not None else 0
        print(f"begins after step {done}", flush=True)
        while done < steps and not session.should_stop():
            network.step()
            time.sleep(step_seconds)
            done += 1
            session.step(done, metadata={"loss": network.loss()})
            if done % 10 == 0:
                print(f"step {done}", flush=True)
        if done < steps:
            print(f"stops after step {done}: {session.reason}", flush=True)
            return STOPPED
    print(f"done: loss {network.loss()!r}", flush=True)
    return 0


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description="Trains a small network, and goes on where it was stopped.")
    parser.add_argument("--steps", type=int, default=500, help="how many (default: %(default)s)")
    parser.add_argument("--step-seconds", type=float, default=0.0, help="a pause in each, as of a larger network")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        return train(options.steps, options.step_seconds)
    except CheckpointFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
