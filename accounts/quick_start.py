"""The first request to the API, in three languages, as the Developers page shows it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

KEY_VARIABLE = "VOICEPOOL_API_KEY"
EXAMPLE_TEXT = "你好，声池。Hello from the pool."


@dataclass(frozen=True)
class Example:
    """`code` is complete: it runs as it stands once the key is in the environment."""

    key: str
    name: str
    code: str


# Each one: take the first voice, speak, wait, save. Nothing to install beside the language itself.
_CURL = Template("""\
export $key_variable=$key

# 1. Which voices are there? Note the id of one.
curl $base_url/api/v1/voices -H "Authorization: Bearer $$$key_variable"

# 2. Speak. The answer holds the job's id.
curl $base_url/api/v1/jobs \\
  -H "Authorization: Bearer $$$key_variable" \\
  -H "Idempotency-Key: $$(uuidgen)" \\
  -H "Content-Type: application/json" \\
  --data '{"voice_id": "VOICE_ID", "text": "$text"}'

# 3. Save the audio while it is made.
curl -o speech.wav $base_url/api/v1/jobs/JOB_ID/stream \\
  -H "Authorization: Bearer $$$key_variable"
""")

_PYTHON = Template("""\
# $key_variable=$key python speak.py
import json, os, time, uuid
from urllib.request import Request, urlopen

BASE = "$base_url/api/v1"
KEY = os.environ["$key_variable"]

def call(path, body=None):
    request = Request(BASE + path, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + KEY)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", str(uuid.uuid4()))
    with urlopen(request) as response:
        return response.read()

voice = json.loads(call("/voices"))["results"][0]
job = json.loads(call("/jobs", {"voice_id": voice["id"], "text": "$text"}))
while job["state"] in ("queued", "running"):
    time.sleep(0.5)
    job = json.loads(call("/jobs/" + job["id"]))
if job["state"] != "succeeded":
    raise SystemExit(job["error"])
with open("speech.wav", "wb") as file:
    file.write(call("/jobs/" + job["id"] + "/audio"))
""")

_NODE = Template("""\
// $key_variable=$key node speak.mjs
import { writeFile } from "node:fs/promises";

const base = "$base_url/api/v1";
const headers = { Authorization: "Bearer " + process.env.$key_variable };

async function call(path, body) {
  const options = { headers: { ...headers } };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.headers["Idempotency-Key"] = crypto.randomUUID();
    options.body = JSON.stringify(body);
  }
  const response = await fetch(base + path, options);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

const voice = (await (await call("/voices")).json()).results[0];
let job = await (await call("/jobs", { voice_id: voice.id, text: "$text" })).json();
while (job.state === "queued" || job.state === "running") {
  await new Promise((resume) => setTimeout(resume, 500));
  job = await (await call("/jobs/" + job.id)).json();
}
if (job.state !== "succeeded") throw new Error(JSON.stringify(job.error));
await writeFile("speech.wav", Buffer.from(await (await call("/jobs/" + job.id + "/audio")).arrayBuffer()));
""")


def examples(*, base_url: str, key: str = "") -> list[Example]:
    """curl, Python and Node, with the address of this installation and the key where it is known."""
    places = {
        "base_url": base_url,
        "key": key or "vp_live_…",
        "key_variable": KEY_VARIABLE,
        "text": EXAMPLE_TEXT,
    }
    return [
        Example("curl", "curl", _CURL.substitute(places)),
        Example("python", "Python", _PYTHON.substitute(places)),
        Example("node", "Node.js", _NODE.substitute(places)),
    ]
