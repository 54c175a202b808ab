"""What the end of a log shows, and what of it tells one failure from another."""

from __future__ import annotations

import pytest

from sickbay.recover.logs import TAIL, Shows, read, without_place


@pytest.mark.parametrize(
    ("line", "shows"),
    [
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", Shows.HARDWARE),
        ("torch.cuda: GPU has fallen off the bus", Shows.HARDWARE),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", Shows.WORKLOAD),
        ("ValueError: batch size must divide", Shows.WORKLOAD),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", Shows.WORKLOAD),
        ("OSError: [Errno 28] No space left on device", Shows.SHARED),
        ("OSError: [Errno 116] Stale file handle", Shows.SHARED),
        ("[rank3]: Watchdog caught collective operation timeout", Shows.SYMPTOM),
        ("NET/IB : mlx5_3:1 Got async event : port error", Shows.SYMPTOM),
        ("Connection reset by peer", Shows.SYMPTOM),
        ("loss = 2.31", Shows.NOTHING),
        ("RuntimeError: something else", Shows.NOTHING),
        ("GPU memory: uses ECC", Shows.NOTHING),
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1", Shows.NOTHING),
    ],
)
def test_a_line_has_to_say_it(line, shows):
    assert read(line).shows is shows


def test_a_cause_beats_the_symptoms_around_it():
    text = "Connection reset by peer\nuncorrectable ECC error\nWatchdog caught collective operation timeout"
    assert read(text).shows is Shows.HARDWARE


def test_only_the_end_of_a_log_counts():
    text = "ValueError: an old one, caught\n" + "step\n" * TAIL
    assert read(text).shows is Shows.NOTHING


PLACES = frozenset({"train-1", "train-10", "llm-0-abcde"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rank 3 on train-1 failed", "rank 77 on train-10 failed"),
        ("bad address 0x7f00dead", "bad address 0x1234"),
        ("peer 10.0.0.1:29500 reset", "peer 10.9.9.9:29501 reset"),
        ("GPU 0000:3b:00.0 lost", "GPU 0000:9b:00.0 lost"),
        ("pod llm-0-abcde: 12.5 s", "pod llm-0-abcde: 3 s"),
    ],
)
def test_the_same_failure_reads_the_same_anywhere(one, other):
    assert without_place(one, PLACES) == without_place(other, PLACES)


def test_different_failures_read_differently():
    assert without_place("KeyError: 'loss'", PLACES) != without_place("KeyError: 'lr'", PLACES)
