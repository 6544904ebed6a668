"""How a customer's program receives a webhook and knows that it is ours, as the page of webhooks shows it. Pure."""

from __future__ import annotations

from accounts.quick_start import Example

SECRET_VARIABLE = "VOICEPOOL_WEBHOOK_SECRET"  # noqa: S105 - a name

_PYTHON = f"""\
# pip install standardwebhooks
# {SECRET_VARIABLE}=whsec_… python receive.py
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

WEBHOOK = Webhook(os.environ["{SECRET_VARIABLE}"])

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = WEBHOOK.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):
            self.send_error(400)
            return
        # The same webhook-id may come twice: do the work once for each.
        print(self.headers["webhook-id"], event["type"], event["data"], flush=True)
        self.send_response(204)
        self.end_headers()

HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
"""

_NODE = f"""\
// {SECRET_VARIABLE}=whsec_… node receive.mjs
import {{ createServer }} from "node:http";
import {{ createHmac, timingSafeEqual }} from "node:crypto";

const secret = Buffer.from(process.env.{SECRET_VARIABLE}.replace("whsec_", ""), "base64");

function isOurs(headers, body) {{
  const sentAt = Number(headers["webhook-timestamp"]);
  if (!(Math.abs(Date.now() / 1000 - sentAt) < 300)) return false;
  const signed = `${{headers["webhook-id"]}}.${{headers["webhook-timestamp"]}}.${{body}}`;
  const expected = createHmac("sha256", secret).update(signed).digest();
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {{
    const given = Buffer.from(signature.split(",")[1] ?? "", "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  }});
}}

createServer(async (request, response) => {{
  let body = "";
  request.setEncoding("utf8");
  for await (const chunk of request) body += chunk;
  const ours = isOurs(request.headers, body);
  if (ours) {{
    // The same webhook-id may come twice: do the work once for each.
    const event = JSON.parse(body);
    console.log(request.headers["webhook-id"], event.type, event.data);
  }}
  response.writeHead(ours ? 204 : 400).end();
}}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
"""


def receivers() -> list[Example]:
    """Whole programs in Python and Node that check the signature and answer."""
    return [Example("python", "Python", _PYTHON), Example("node", "Node.js", _NODE)]
