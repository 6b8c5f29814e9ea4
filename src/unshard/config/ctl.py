"""The file of `unshard ctl`, in place of its flags."""

from __future__ import annotations

from pydantic import Field

from unshard.config.listener import LinkSecurity
from unshard.config.section import Seconds


class CtlConfig(LinkSecurity):
    """Where the masters are, and how to speak to them. DM's keys; a flag counts over them."""

    master_addr: str = Field(default="", description="HOST:PORT of the masters, with commas.")
    rpc_timeout: Seconds = Field(default=600.0, gt=0, description="How long an answer may take.")
