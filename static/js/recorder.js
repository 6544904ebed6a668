// Records a voice with the microphone and puts the recording into the form's file field, so that the form is sent
// as if the person had chosen a file. Bound to [data-recorder]; its texts come from data-text-* attributes.

const MIME_TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus", "audio/webm"];
const EXTENSIONS = { "audio/webm": "webm", "audio/mp4": "m4a", "audio/ogg": "ogg" };
const TOO_QUIET = 0.02;
const TOO_LOUD = 0.985;

function supportedMimeType() {
  if (!("MediaRecorder" in window)) return null;
  return MIME_TYPES.find((type) => MediaRecorder.isTypeSupported(type)) ?? null;
}

function seconds(ms) {
  return (ms / 1000).toFixed(1);
}

class Recorder {
  constructor(root) {
    this.root = root;
    this.minimumMs = Number(root.dataset.minimumMs);
    this.maximumMs = Number(root.dataset.maximumMs);
    this.file = document.getElementById(root.dataset.fileField);
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.mimeType = supportedMimeType();
    this.state = "idle";
    this.part("start").addEventListener("click", () => this.start());
    this.part("stop").addEventListener("click", () => this.stop());
    this.part("again").addEventListener("click", () => this.start());
    this.part("discard").addEventListener("click", () => this.discard());
    window.addEventListener("pagehide", () => this.release());
    if (!this.mimeType || !navigator.mediaDevices?.getUserMedia) {
      this.say(window.isSecureContext ? "unsupported" : "insecure", "bad");
      this.part("start").disabled = true;
    }
    root.hidden = false;
    this.show("idle");
  }

  text(name) {
    return this.root.dataset[`text${name[0].toUpperCase()}${name.slice(1)}`] ?? "";
  }

  say(name, tone = "") {
    const status = this.part("status");
    status.textContent = this.text(name);
    status.dataset.tone = tone;
  }

  show(state) {
    this.state = state;
    this.root.dataset.state = state;
    this.part("start").hidden = state !== "idle";
    this.part("stop").hidden = state !== "recording";
    this.part("again").hidden = state !== "recorded";
    this.part("discard").hidden = state !== "recorded";
    this.part("listen").hidden = state !== "recorded";
    this.part("meter").hidden = state !== "recording";
    this.part("clock").hidden = state !== "recording";
  }

  async start() {
    if (this.state === "asking" || this.state === "recording") return;
    const focused = this.root.contains(document.activeElement);
    this.state = "asking";
    this.say("asking");
    try {
      // The browser's own clean-up is made for calls: it gates pauses and cuts the highs that a voice is cloned from.
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: true, channelCount: 1 },
      });
    } catch (error) {
      const reasons = { NotAllowedError: "denied", NotFoundError: "missing", NotReadableError: "busy" };
      this.show("idle");
      this.say(reasons[error.name] ?? "broken", "bad");
      return;
    }
    this.discardRecording();
    this.chunks = [];
    this.recorder = new MediaRecorder(this.stream, { mimeType: this.mimeType, audioBitsPerSecond: 128000 });
    this.recorder.addEventListener("dataavailable", (event) => {
      if (event.data.size) this.chunks.push(event.data);
    });
    this.recorder.addEventListener("stop", () => this.finish());
    this.recorder.addEventListener("error", () => this.stop());
    this.stream.getAudioTracks()[0].addEventListener("ended", () => this.stop());
    await this.startMeter();
    this.recorder.start(250);
    this.startedAt = performance.now();
    this.show("recording");
    this.say("recording", "live");
    if (focused) this.part("stop").focus();
    this.frame = requestAnimationFrame(() => this.tick());
  }

  async startMeter() {
    this.context = new AudioContext();
    await this.context.resume();
    this.analyser = this.context.createAnalyser();
    this.analyser.fftSize = 2048;
    this.samples = new Float32Array(this.analyser.fftSize);
    this.context.createMediaStreamSource(this.stream).connect(this.analyser);
    this.loudest = 0;
    this.level = 0;
  }

  tick() {
    if (this.state !== "recording") return;
    const elapsed = performance.now() - this.startedAt;
    this.analyser.getFloatTimeDomainData(this.samples);
    let peak = 0;
    for (const sample of this.samples) peak = Math.max(peak, Math.abs(sample));
    this.loudest = Math.max(this.loudest, peak);
    // Falls slowly, as meters do; the scale is in decibels, -60 to 0.
    this.level = Math.max(peak, this.level * 0.9);
    const decibels = 20 * Math.log10(Math.max(this.level, 1e-4));
    this.part("meter").value = Math.max(0, Math.min(1, (decibels + 60) / 60));
    this.part("elapsed").textContent = seconds(elapsed);
    this.part("left").textContent = seconds(Math.max(0, this.maximumMs - elapsed));
    this.hint(elapsed, peak);
    if (elapsed >= this.maximumMs) this.stop();
    else this.frame = requestAnimationFrame(() => this.tick());
  }

  hint(elapsed, peak) {
    let hint = "recording";
    if (peak > TOO_LOUD) this.loudUntil = elapsed + 1500;
    if (elapsed < (this.loudUntil ?? 0)) hint = "tooLoud";
    else if (elapsed > 1500 && this.loudest < TOO_QUIET) hint = "tooQuiet";
    else if (elapsed > this.minimumMs) hint = "enough";
    if (hint !== this.lastHint) this.say(hint, hint.startsWith("too") ? "warn" : "live");
    this.lastHint = hint;
  }

  stop() {
    if (this.recorder?.state === "recording") this.recorder.stop();
  }

  finish() {
    const focused = this.root.contains(document.activeElement);
    const elapsed = performance.now() - this.startedAt;
    this.release();
    const type = this.mimeType.split(";")[0];
    const blob = new Blob(this.chunks, { type });
    this.lastHint = null;
    this.loudUntil = 0;
    if (elapsed < this.minimumMs || !blob.size) {
      this.show("idle");
      this.say("tooShort", "bad");
      if (focused) this.part("start").focus();
      return;
    }
    const transfer = new DataTransfer();
    transfer.items.add(new File([blob], `recording.${EXTENSIONS[type] ?? "webm"}`, { type }));
    this.file.files = transfer.files;
    this.url = URL.createObjectURL(blob);
    this.part("listen").src = this.url;
    this.show("recorded");
    this.say("recorded", "ok");
    if (focused) this.part("again").focus();
    this.file.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: { recorded: true } }));
  }

  discardRecording() {
    if (!this.url) return;
    URL.revokeObjectURL(this.url);
    this.url = null;
    this.part("listen").removeAttribute("src");
    this.part("listen").load();
    this.file.value = "";
    this.file.dispatchEvent(new Event("change", { bubbles: true }));
  }

  discard() {
    this.discardRecording();
    this.show("idle");
    this.say("idle");
    this.part("start").focus();
  }

  // The microphone's light goes off at once, not when the page is collected.
  release() {
    cancelAnimationFrame(this.frame);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    if (this.context?.state !== "closed") this.context?.close();
  }
}

for (const root of document.querySelectorAll("[data-recorder]")) new Recorder(root);
