"""`unshard demo`: the main job on throwaway servers, with a kill in the middle and the proof at the end."""

from unshard.cli.demo.story import run_demo

__all__ = ["run_demo"]
