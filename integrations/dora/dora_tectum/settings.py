"""settings.py - what the `env` of a dataflow's node says, checked."""

import json
from dataclasses import dataclass


class Wrong(ValueError):
    """A variable that does not say what it should; the message names it."""


@dataclass(frozen=True)
class Settings:
    pipeline: str
    names: dict[str, str]
    """inputs of the dora node to inputs of the robot"""
    options: dict[str, object]
    """of tectum.open"""
    trigger: str
    """the input that begins an observation; "": a new value of every picture and state"""
    deadline_ns: int
    """from the trigger on; 0: the action node's own"""
    max_age_ns: int
    """of a picture or state that may still be used; 0: any"""


def _object(env, name):
    try:
        found = json.loads(env.get(name, "{}"))
    except ValueError as error:
        raise Wrong(f"{name}: this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Wrong(f"{name}: an object of JSON is needed, such as {{\"image\": \"observation/image\"}}")
    return found


def _nanoseconds(env, name, otherwise):
    text = env.get(name, otherwise)
    try:
        ms = float(text)
    except ValueError:
        raise Wrong(f"{name}: '{text:.40}' is no number of milliseconds") from None
    if not 0 <= ms <= 3_600_000:
        raise Wrong(f"{name}: {ms:g} ms; there are 0 to 3600000")
    return int(ms * 1e6)


def settings(env):
    """Of a mapping of variables. Raises Wrong."""
    pipeline = env.get("TECTUM_PIPELINE", "")
    if not pipeline:
        raise Wrong("TECTUM_PIPELINE: a pipeline file, a LeRobot folder or a pipeline's name is needed")
    names = _object(env, "TECTUM_INPUTS")
    if not names or not all(isinstance(name, str) and name for name in names.values()):
        raise Wrong("TECTUM_INPUTS: each input of the node needs the name of an input of the robot")
    trigger = env.get("TECTUM_TRIGGER", "")
    if trigger == "reset" or "reset" in names:
        raise Wrong("TECTUM_INPUTS, TECTUM_TRIGGER: the input 'reset' ends a stop, and is nothing else")
    return Settings(pipeline, names, _object(env, "TECTUM_OPTIONS"), trigger,
                    _nanoseconds(env, "TECTUM_DEADLINE_MS", "0"), _nanoseconds(env, "TECTUM_MAX_AGE_MS", "1000"))
