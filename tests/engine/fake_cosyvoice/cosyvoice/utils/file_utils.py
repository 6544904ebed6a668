"""Part of a double: a logger that says everything, and a reader of files only."""

import logging

import soundfile
import torch

logging.getLogger().setLevel(logging.DEBUG)
logging.getLogger().addHandler(logging.StreamHandler())


def load_wav(wav, target_sr, min_sr=16000):
    """(1, N): the channels' mean. Opens `wav` anew each time it is called."""
    speech, sample_rate = soundfile.read(wav, dtype="float32", always_2d=True)
    mono = torch.from_numpy(speech.mean(axis=1))
    if sample_rate != target_sr:
        assert sample_rate >= min_sr, f"wav sample rate {sample_rate} must be greater than {target_sr}"
        at = torch.arange(int(len(mono) * target_sr / sample_rate)) * sample_rate / target_sr
        mono = mono[at.long().clamp(max=len(mono) - 1)]
    return mono.unsqueeze(dim=0)
