"""Part of a double: tokens from a thread, audio from tokens, and everything that goes wrong in between."""

import threading
import time
import uuid
from contextlib import nullcontext

import numpy as np
import torch

from cosyvoice.llm.llm import CosyVoice3LM, Qwen2LM

SAMPLES_PER_TOKEN = 960  # 25 tokens a second at 24 kHz
POLL_S = 0.005  # the real one waits 0.1 s
LOOKAHEAD = 3
NO_TOKENS = "Kernel size: (4). Kernel size can't be greater than actual input size"


class CosyVoice2Model:
    language_model = Qwen2LM

    def __init__(self, behaviour, fp16=False):
        self.device = torch.device("cpu")
        self.behaviour = behaviour
        self.llm = self.language_model(behaviour)
        self.fp16 = fp16
        self.token_hop_len = 25
        self.token_max_hop_len = 4 * self.token_hop_len
        self.stream_scale_factor = 2
        self.llm_context = nullcontext()
        self.lock = threading.Lock()
        self.tts_speech_token_dict = {}
        self.llm_end_dict = {}
        self.hift_cache_dict = {}
        self.silent_tokens = []

    def llm_job(self, text, prompt_text, llm_prompt_speech_token, llm_embedding, uuid):
        with self.llm_context:
            for token in self.llm.inference(
                text=text,
                text_len=torch.tensor([text.shape[1]]),
                prompt_text=prompt_text,
                prompt_text_len=torch.tensor([prompt_text.shape[1]]),
                prompt_speech_token=llm_prompt_speech_token,
                prompt_speech_token_len=torch.tensor([llm_prompt_speech_token.shape[1]]),
                embedding=llm_embedding,
                uuid=uuid,
            ):
                if token not in self.silent_tokens:
                    self.tts_speech_token_dict[uuid].append(token)
        self.llm_end_dict[uuid] = True

    def token2wav(
        self,
        token,
        prompt_token,
        prompt_feat,
        embedding,
        token_offset,
        uuid,
        stream=False,
        finalize=False,
        speed=1.0,
    ):
        """(1, N). A tone for each token, whose pitch is the token's and the voice's."""
        entry = self.behaviour.current
        if token.shape[1] == 0:
            raise RuntimeError(NO_TOKENS)
        if entry["do"] == "flow_error":
            raise RuntimeError("the double was told to break")
        # In phase from the beginning, so that it matters not in how many parts it is made.
        hertz = 100 + token[0].double() % 200 + embedding.double().abs().mean() * 100
        phase = torch.cumsum(hertz.repeat_interleave(SAMPLES_PER_TOKEN) * 2 * np.pi / 24000, dim=0)
        wave = (0.3 * torch.sin(phase) * (1 + 0.2 * torch.sin(phase * 3))).float()
        if not finalize:
            wave = wave[: wave.shape[0] - LOOKAHEAD * SAMPLES_PER_TOKEN]
        wave = wave[token_offset * SAMPLES_PER_TOKEN :]
        self.hift_cache_dict[uuid] = {"mel": wave[-8:], "speech_offset": token_offset}
        if speed != 1.0:
            count = int(wave.shape[0] / speed)
            wave = torch.nn.functional.interpolate(wave.reshape(1, 1, -1), size=count, mode="linear").reshape(
                -1
            )
        if entry["do"] == "other_speaker":
            wave = wave * (-1.0) ** torch.arange(wave.shape[0])  # the spectrum upside down
        if entry["do"] == "nan":
            wave = wave * float("nan")
        return (wave * (0 if entry["do"] == "silent" else 1)).clamp(-0.99, 0.99).unsqueeze(0)

    def tts(
        self,
        text=torch.zeros(1, 0, dtype=torch.int32),
        flow_embedding=torch.zeros(0, 192),
        llm_embedding=torch.zeros(0, 192),
        prompt_text=torch.zeros(1, 0, dtype=torch.int32),
        llm_prompt_speech_token=torch.zeros(1, 0, dtype=torch.int32),
        flow_prompt_speech_token=torch.zeros(1, 0, dtype=torch.int32),
        prompt_speech_feat=torch.zeros(1, 0, 80),
        source_speech_token=torch.zeros(1, 0, dtype=torch.int32),
        stream=False,
        speed=1.0,
        **kwargs,
    ):
        self.behaviour.current = self.behaviour.next()
        this_uuid = str(uuid.uuid1())
        with self.lock:
            self.tts_speech_token_dict[this_uuid], self.llm_end_dict[this_uuid] = [], False
            self.hift_cache_dict[this_uuid] = None
        arguments = (text, prompt_text, llm_prompt_speech_token, llm_embedding, this_uuid)
        thread = threading.Thread(target=self.llm_job, args=arguments)
        thread.start()
        offset = 0
        flow = {
            "prompt_token": flow_prompt_speech_token,
            "prompt_feat": prompt_speech_feat,
            "embedding": flow_embedding,
            "uuid": this_uuid,
        }
        if stream is True:
            pad = -flow_prompt_speech_token.shape[1] % self.token_hop_len
            while True:
                time.sleep(POLL_S)  # the real one looks at its thread's tokens by turns too
                hop = self.token_hop_len + pad if offset == 0 else self.token_hop_len
                tokens = self.tts_speech_token_dict[this_uuid]
                if len(tokens) - offset >= hop + LOOKAHEAD:
                    given = torch.tensor(tokens[: offset + hop + LOOKAHEAD]).unsqueeze(0)
                    speech = self.token2wav(given, token_offset=offset, stream=True, finalize=False, **flow)
                    offset += hop
                    # Longer each time, and never reset.
                    self.token_hop_len = min(
                        self.token_max_hop_len, self.token_hop_len * self.stream_scale_factor
                    )
                    yield {"tts_speech": speech}
                if self.llm_end_dict[this_uuid] is True and len(tokens) - offset < hop + LOOKAHEAD:
                    break
            speed = 1.0
        thread.join()
        given = torch.tensor(self.tts_speech_token_dict[this_uuid]).unsqueeze(0)
        yield {"tts_speech": self.token2wav(given, token_offset=offset, finalize=True, speed=speed, **flow)}
        with self.lock:
            self.tts_speech_token_dict.pop(this_uuid)
            self.llm_end_dict.pop(this_uuid)
            self.hift_cache_dict.pop(this_uuid)


class CosyVoice3Model(CosyVoice2Model):
    language_model = CosyVoice3LM

    def __init__(self, behaviour, fp16=False):
        super().__init__(behaviour, fp16)
        self.silent_tokens = [1, 2, 28, 29, 55, 248, 494, 2241, 2242, 2322, 2323]
