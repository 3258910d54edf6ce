#!/usr/bin/env python3
"""tectum_node.py - a ROS 2 node that drives a robot from `tectum serve`: pictures, joint states and a command in,
joint trajectories and diagnostics out. doc/ros.md explains it.

    python3 tectum_node.py --ros-args --params-file robot.yaml

The package `tectum` has the client (tectum.AsyncClient), whose queue of actions belongs to instants:
this node asks it for the actions of the next few instants and publishes them as a trajectory. The
engine is in the server's process, and no callback here ever waits for it.
"""

import sys
from dataclasses import dataclass

import numpy as np
import rclpy
import tectum
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CHANNELS = {"rgb8": 3, "bgr8": 3, "mono8": 1}


class Unusable(ValueError):
    """A message that is no input of the robot; the sentence says why."""


def picture(message):
    """uint8 [height, width, 3] RGB, or [height, width, 1], of a sensor_msgs/Image."""
    if message.encoding not in CHANNELS:
        raise Unusable(f"encoding '{message.encoding:.40}' is not read; there are {', '.join(CHANNELS)}")
    channels = CHANNELS[message.encoding]
    row = message.width * channels
    data = np.frombuffer(message.data, np.uint8)
    if message.step < row or len(data) != message.step * message.height:
        raise Unusable(f"{len(data)} bytes in rows of {message.step} are no picture of {message.width} x {message.height}")
    pixels = data.reshape(message.height, message.step)[:, :row].reshape(message.height, message.width, channels)
    return np.ascontiguousarray(pixels[:, :, ::-1] if message.encoding == "bgr8" else pixels)


def state(message, joints):
    """float32 [joints] of a sensor_msgs/JointState: positions, in the order of `joints`; as they come where there are none."""
    if joints:
        place = {name: i for i, name in enumerate(message.name)}
        missing = [name for name in joints if name not in place or place[name] >= len(message.position)]
        if missing:
            raise Unusable(f"there is no position of joint '{missing[0]:.100}'")
        return np.array([message.position[place[name]] for name in joints], np.float32)
    return np.array(message.position, np.float32)


def trajectory(actions, joints, period_ns, stamp):
    """A JointTrajectory of positions: point i is for the stamp and i periods."""
    message = JointTrajectory(joint_names=joints)
    message.header.stamp = stamp
    for i, values in enumerate(actions):
        seconds, nanoseconds = divmod(i * period_ns, 10**9)
        message.points.append(JointTrajectoryPoint(
            positions=values.tolist(), time_from_start=Duration(sec=seconds, nanosec=nanoseconds)))
    return message


@dataclass
class Kept:
    value: object
    captured_ns: int  # on the clock of tectum.now()


class TectumNode(Node):
    """Topics are relative names, to be remapped; parameters are in doc/ros.md."""

    def __init__(self, **options):
        self.client = None  # while the parameters are read
        super().__init__("tectum", **options)
        self.cameras = self._table("cameras")
        self.states = self._table("states")
        self.state_joints = self._list("state_joints")
        self.joints = self._list("joints")
        self.prompt_input = self.declare_parameter("prompt_input", "prompt").value
        rate = self.declare_parameter("rate_hz", 20.0).value
        if not 0.001 <= rate <= 10000:
            raise Unusable(f"parameter 'rate_hz': there are 0.001 to 10000, {rate:g} is none of them")
        self.period_ns = int(1e9 / rate)
        self.points = self.declare_parameter("points", 4).value
        self.max_age_ns = int(1e6 * self.declare_parameter("max_age_ms", 500).value)
        client = {"rate_hz": rate, "horizon": self.declare_parameter("horizon", 0).value,
                  "merge": self.declare_parameter("merge", "linear").value,
                  "on_dry": self.declare_parameter("on_dry", "hold").value,
                  "hold_ms": self.declare_parameter("hold_ms", 500).value,
                  "deadline_ms": self.declare_parameter("deadline_ms", 0.0).value,
                  "ca_file": self._text("ca_file"), "server_name": self._text("server_name"), "key": self._key()}
        if not self.joints or self.points < 1:
            raise Unusable("parameters: 'joints' names each column of an action, and there is at least one point")
        self.client = tectum.AsyncClient(self.declare_parameter("url", "ws://127.0.0.1:8000").value, **client)
        self.kept, self.command, self.refused = {}, None, ""
        self._topics()
        self.create_timer(1 / rate, self.act)
        self.create_timer(1.0, self.diagnose)

    def _table(self, name):
        """A parameter of texts TOPIC=INPUT."""
        pairs = [text.partition("=") for text in self._list(name)]
        if not all(topic and same and called for topic, same, called in pairs):
            raise Unusable(f"parameter '{name}': a list of TOPIC=INPUT is needed")
        return {topic: called for topic, _, called in pairs}

    def _text(self, name):
        """A parameter of text; None where there is none."""
        return self.declare_parameter(name, "").value or None

    def _key(self):
        """The first line of the file that `key_file` names: what is in a parameter itself, all of ROS can read."""
        path = self._text("key_file")
        if not path:
            return None
        try:
            with open(path, encoding="ascii") as file:
                key = file.readline().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Unusable(f"parameter 'key_file': {error}") from None
        if not key:
            raise Unusable(f"parameter 'key_file': the first line of {path} is empty")
        return key

    def _list(self, name):
        return [text for text in self.declare_parameter(name, [""]).value if text]

    def _topics(self):
        for topic, called in self.cameras.items():
            self.create_subscription(Image, topic, self._keeper(called, picture), qos_profile_sensor_data)
        for topic, called in self.states.items():
            self.create_subscription(JointState, topic, self._keeper(called, lambda m: state(m, self.state_joints)),
                                     qos_profile_sensor_data)
        self.create_subscription(String, "command", self.take_command, 10)
        self.create_subscription(Bool, "reset", self.take_reset, 10)
        self.trajectories = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)

    # --- inputs -------------------------------------------------------------------------------------

    def _keeper(self, called, read):
        def keep(message):
            try:
                self.kept[called] = Kept(read(message), self._captured(message.header.stamp))
            except Unusable as error:
                self.kept.pop(called, None)
                self._refuse(f"{called}: {error}")
                return
            self.observe()
        return keep

    def _captured(self, stamp):
        """The message's stamp on the clock of tectum.now(); where it is none, or ahead, or a minute old: now."""
        ago = self.get_clock().now().nanoseconds - (stamp.sec * 10**9 + stamp.nanosec)
        return tectum.now() - (ago if 0 <= ago < 60 * 10**9 else 0)

    def take_command(self, message):
        """Another command begins an episode: what was asked for the one before is not carried out."""
        if self.command is not None and message.data != self.command:
            self.client.reset()
        self.command = message.data
        self.observe()

    def take_reset(self, message):
        """True also ends a stop of the server."""
        self.client.reset(end_stop=message.data)

    def observe(self):
        """Hand an observation over once all of it is there and none of it is old."""
        wanted = [*self.cameras.values(), *self.states.values()]
        if self.command is None or any(name not in self.kept for name in wanted):
            return
        oldest = min(self.kept[name].captured_ns for name in wanted)
        if tectum.now() - oldest > self.max_age_ns:
            return
        values = {name: self.kept[name].value for name in wanted}
        try:
            self.client.observe({**values, self.prompt_input: self.command}, captured_ns=oldest)
        except tectum.Error as error:
            self._refuse(str(error))

    def _refuse(self, sentence):
        self.refused = sentence
        self.get_logger().warning(sentence, throttle_duration_sec=1.0)

    # --- outputs ------------------------------------------------------------------------------------

    def act(self):
        """The actions of this instant and the next ones, as long as there are any."""
        now, actions = tectum.now(), []
        for i in range(self.points):
            action = self.client.next(now + i * self.period_ns)
            if action.values is None:
                break
            if len(action.values) != len(self.joints):
                self._refuse(f"an action has {len(action.values)} columns, 'joints' has {len(self.joints)} names")
                return
            actions.append(action.values)
        # Without actions nothing is published: a controller stops behind the last point it was given.
        if actions:
            stamp = self.get_clock().now().to_msg()
            self.trajectories.publish(trajectory(actions, self.joints, self.period_ns, stamp))

    def diagnose(self):
        stats, action = self.client.stats, self.client.next()
        level, said = DiagnosticStatus.OK, action.source
        if action.source != "fresh":
            level = DiagnosticStatus.WARN if action.values is not None else DiagnosticStatus.ERROR
            said = f"{action.source}: {stats.message or self.refused or 'no observation is complete'}"
        elif self.refused or stats.message:
            level, said = DiagnosticStatus.WARN, self.refused or stats.message
        told = {"source": action.source, "age_ms": f"{action.age_ns / 1e6:.1f}", "connected": stats.connected,
                "requests": stats.requests, "substitutes": stats.substitutes, "late": stats.late, "dry": stats.dry,
                "failures": stats.failures, "delay_p99_ms": f"{stats.delay_p99 / 1e6:.1f}"}
        message = DiagnosticArray(status=[DiagnosticStatus(
            level=level, name="tectum", message=said, values=[KeyValue(key=k, value=str(v)) for k, v in told.items()])])
        message.header.stamp = self.get_clock().now().to_msg()
        self.diagnostics.publish(message)
        self.refused = ""

    def destroy_node(self):
        if self.client is not None:
            self.client.close()
        super().destroy_node()


def main():
    rclpy.init()
    try:
        node = TectumNode()
    except (Unusable, tectum.Error, ParameterException, NameValidationException) as error:
        print("tectum_node:", " ".join(str(error).split()), file=sys.stderr)
        rclpy.try_shutdown()
        return 1
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:  # noqa: BLE001 - a signal ends ROS 2 amid a callback, which then cannot publish
        if rclpy.ok():
            raise
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
