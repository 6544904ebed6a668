"""What the clock does about webhooks: what waits is sent, in a thread of its own, so that no customer's server holds
anything else up."""

from __future__ import annotations

from accounts.services.webhook_sending import deliver_due
from portal.lib.side_thread import SideThread


class WebhookUpkeep:
    """`tick` once a second while this process's clock leads."""

    def __init__(self) -> None:
        self.thread = SideThread("webhooks")

    def tick(self) -> None:
        """Begin to send, unless that is being done. Returns at once."""
        self.thread.start([deliver_due])
