from tts.models.attempt import Attempt
from tts.models.device import Device, DeviceKind, DeviceSlot
from tts.models.job import SynthesisJob
from tts.models.segment import Segment
from tts.models.voice import Voice, VoiceKind

__all__ = ["Attempt", "Device", "DeviceKind", "DeviceSlot", "Segment", "SynthesisJob", "Voice", "VoiceKind"]
