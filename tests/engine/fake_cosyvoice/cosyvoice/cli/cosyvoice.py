"""A double of CosyVoice's classes: see README.md. The signatures are the real ones."""

import logging
import os

import torch

from cosyvoice.cli.frontend import CosyVoiceFrontEnd, Tokenizer
from cosyvoice.cli.model import CosyVoice2Model, CosyVoice3Model
from cosyvoice.fake_behaviour import Behaviour


class CosyVoice:
    def __init__(self, model_dir, load_jit=False, load_trt=False, fp16=False, trt_concurrent=1):
        raise AssertionError("CosyVoice 1 is never loaded: the engine refuses its folder first")

    def _build(self, model_dir, yaml, model, tokenizer):
        if not os.path.exists(model_dir):
            raise AssertionError("the real one would download a model now")
        if not os.path.exists(f"{model_dir}/{yaml}"):
            raise ValueError(f"{model_dir}/{yaml} not found!")
        self.model_dir = model_dir
        self.frontend = CosyVoiceFrontEnd(
            Tokenizer,
            None,
            f"{model_dir}/campplus.onnx",
            f"{model_dir}/{tokenizer}",
            f"{model_dir}/spk2info.pt",
        )
        self.sample_rate = 24000
        self.model = model(Behaviour(model_dir))

    def list_available_spks(self):
        return list(self.frontend.spk2info.keys())

    def add_zero_shot_spk(self, prompt_text, prompt_wav, zero_shot_spk_id):
        assert zero_shot_spk_id != "", "do not use empty zero_shot_spk_id"
        model_input = self.frontend.frontend_zero_shot("", prompt_text, prompt_wav, self.sample_rate, "")
        del model_input["text"], model_input["text_len"]
        self.frontend.spk2info[zero_shot_spk_id] = model_input
        return True

    def save_spkinfo(self):
        torch.save(self.frontend.spk2info, f"{self.model_dir}/spk2info.pt")

    def inference_zero_shot(
        self,
        tts_text,
        prompt_text,
        prompt_wav,
        zero_shot_spk_id="",
        stream=False,
        speed=1.0,
        text_frontend=True,
    ):
        prompt_text = self.frontend.text_normalize(prompt_text, split=False, text_frontend=text_frontend)
        for part in self.frontend.text_normalize(tts_text, split=True, text_frontend=text_frontend):
            logging.info("synthesis text %s", part)
            yield from self.model.tts(
                **self.frontend.frontend_zero_shot(
                    part, prompt_text, prompt_wav, self.sample_rate, zero_shot_spk_id
                ),
                stream=stream,
                speed=speed,
            )

    def inference_cross_lingual(
        self, tts_text, prompt_wav, zero_shot_spk_id="", stream=False, speed=1.0, text_frontend=True
    ):
        for part in self.frontend.text_normalize(tts_text, split=True, text_frontend=text_frontend):
            logging.info("synthesis text %s", part)
            yield from self.model.tts(
                **self.frontend.frontend_cross_lingual(part, prompt_wav, self.sample_rate, zero_shot_spk_id),
                stream=stream,
                speed=speed,
            )


class CosyVoice2(CosyVoice):
    def __init__(
        self, model_dir, load_jit=False, load_trt=False, load_vllm=False, fp16=False, trt_concurrent=1
    ):
        self._build(model_dir, "cosyvoice2.yaml", CosyVoice2Model, "speech_tokenizer_v2.onnx")

    def inference_instruct2(
        self,
        tts_text,
        instruct_text,
        prompt_wav,
        zero_shot_spk_id="",
        stream=False,
        speed=1.0,
        text_frontend=True,
    ):
        for part in self.frontend.text_normalize(tts_text, split=True, text_frontend=text_frontend):
            logging.info("synthesis text %s", part)
            yield from self.model.tts(
                **self.frontend.frontend_instruct2(
                    part, instruct_text, prompt_wav, self.sample_rate, zero_shot_spk_id
                ),
                stream=stream,
                speed=speed,
            )


class CosyVoice3(CosyVoice2):
    def __init__(self, model_dir, load_trt=False, load_vllm=False, fp16=False, trt_concurrent=1):
        self._build(model_dir, "cosyvoice3.yaml", CosyVoice3Model, "speech_tokenizer_v3.onnx")


def AutoModel(**kwargs):
    for yaml, kind in (
        ("cosyvoice.yaml", CosyVoice),
        ("cosyvoice2.yaml", CosyVoice2),
        ("cosyvoice3.yaml", CosyVoice3),
    ):
        if os.path.exists(f"{kwargs['model_dir']}/{yaml}"):
            return kind(**kwargs)
    raise TypeError("No valid model type found!")
