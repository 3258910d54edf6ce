"""python_types.py - a robot's program for a checker of types, which is not run: what each call gives, and mistakes.

A line with `type: ignore[KIND]` is a mistake of that kind: mypy says so where it finds none there.
"""

from collections.abc import Iterator
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import tectum

observation = {"observation/state": np.zeros(4, np.float32), "prompt": "press the button"}


def in_process() -> None:
    with tectum.open("demo_metaworld", set={"frame.sessions": 2}, threads=1) as pipeline:
        assert_type(pipeline, tectum.Pipeline)
        robot = pipeline.robot(1)
        result = robot.infer(observation, text=True)
        assert_type(result.actions, NDArray[np.float64])
        assert_type(result.age_ns, int)
        assert_type(robot.submit(observation), int)
        assert_type(robot.handout(None).source, str)
        assert_type(robot.texts(), Iterator[tectum.Piece])
        assert_type([ranked.index for ranked in robot.ranking("talk").candidates], list[int])
        robot.infer(observation, texts=True)  # type: ignore[call-arg]
        robot.infer(7)  # type: ignore[arg-type]
        pipeline.robt(1)  # type: ignore[attr-defined]


async def beside_others(robot: tectum.Robot) -> NDArray[np.float64]:
    return (await robot.infer_async(observation)).actions


def over_a_network() -> None:
    with tectum.AsyncClient("ws://robot:8000", rate_hz=20, merge="linear", horizon=8, ca_file="robot.pem", discrete=[3]) as client:
        assert_type(client.observe(observation), int)
        action = client.next()
        assert_type(action.values, NDArray[np.float64] | None)
        print(action.values.shape)  # type: ignore[union-attr]
        assert_type(client.stats.delay_p99, int)
    tectum.AsyncClient("ws://robot:8000")  # type: ignore[call-arg]
    tectum.AsyncClient("ws://robot:8000", rate_hz=20, horizn=8)  # type: ignore[call-arg]
    tectum.AsyncClient("ws://robot:8000", rate_hz=20, horizon="8")  # type: ignore[arg-type]
    tectum.AsyncClient("ws://robot:8000", rate_hz=20, merge="lienar")  # type: ignore[arg-type]


def errors() -> str:
    try:
        tectum.open("demo_metaworld")
    except tectum.Error as error:
        return f"{error.place.line}" if error.place else error.status.name
    return ""
