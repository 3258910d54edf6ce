"""ros2_node.py - a robot of ROS 2 whose node tectum_node.py drives: trajectories have the server's numbers, and what goes
wrong is in the diagnostics. usage: ros2_node.py PROGRAM    with rclpy and tectum in PYTHONPATH"""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory

sys.path.insert(0, "integrations/ros2")
import tectum_node  # noqa: E402
from serve_harness import BOX, PROGRAM, SLOW, Server, check, key_file, main, servers, test  # noqa: E402

DEMO = "pipelines/demo_metaworld.lua"
PROGRAM_FILE = "integrations/ros2/tectum_node.py"
JOINTS = ["x", "y", "z", "gripper"]
rng = np.random.default_rng(5)
PICTURES = [rng.integers(0, 256, (64, 64, 3), np.uint8) for _ in range(2)]
STATE = np.array([0.0, 0.6, 0.2, 1.0], np.float32)
rclpy.init()


def image(pixels, encoding="rgb8", padding=0):
    height, width, channels = pixels.shape
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (0, padding)), constant_values=77)
    return Image(height=height, width=width, encoding=encoding, step=rows.shape[1], data=rows.tobytes())


class Robot(Node):
    """Publishes an observation again and again, as cameras do, and keeps what it is told."""

    def __init__(self):
        super().__init__("robot")
        self.encoding, self.trajectories, self.diagnostics = "bgr8", [], []
        self.cameras = [self.create_publisher(Image, f"{c}/image_raw", 10) for c in ("camera", "wrist_camera")]
        self.joints = self.create_publisher(JointState, "joint_states", 10)
        self.command = self.create_publisher(String, "command", 10)
        self.reset = self.create_publisher(Bool, "reset", 10)
        self.create_subscription(JointTrajectory, "joint_trajectory", self.trajectories.append, 10)
        self.create_subscription(DiagnosticArray, "/diagnostics", self.diagnostics.append, 10)
        self.create_timer(0.1, self.publish)

    def publish(self):
        stamp = self.get_clock().now().to_msg()
        for publisher, pixels in zip(self.cameras, PICTURES):
            message = image(pixels[:, :, ::-1] if self.encoding == "bgr8" else pixels, self.encoding)
            message.header.stamp = stamp
            publisher.publish(message)
        order = [3, 1, 0, 2]  # joint states come in any order
        message = JointState(name=[JOINTS[i] for i in order], position=[float(STATE[i]) for i in order])
        message.header.stamp = stamp
        self.joints.publish(message)
        self.command.publish(String(data="press the button"))

    def until(self, wanted):
        for _ in range(int(1200 * SLOW)):
            if wanted():
                return
            rclpy.spin_once(self, timeout_sec=0.05)
        check(False, "it did not come about", [m.status[0].message for m in self.diagnostics[-3:]])

    def told(self, word):
        """A diagnosis with this word in it comes from now on."""
        before = len(self.diagnostics)
        self.until(lambda: any(word in m.status[0].message for m in self.diagnostics[before:]))
        return next(m.status[0] for m in self.diagnostics[before:] if word in m.status[0].message)


def node(url, *more):
    """The program, as a robot's launch file starts it; a row is for 250 ms, so that no chunk is late on a busy machine."""
    said = ["--ros-args", "--params-file", "integrations/ros2/metaworld.yaml", "-p", f"url:={url}", "-p", "rate_hz:=4.0",
            "-p", "horizon:=16", "-p", "max_age_ms:=60000", *more]
    p = subprocess.Popen([sys.executable, PROGRAM_FILE, *said], stderr=subprocess.PIPE, text=True)
    servers.append(p)
    return p


def chunk_of_run():
    """The first chunk of the observation with the server's seed."""
    path = "/".join((os.environ["ROS_LOG_DIR"], "seen.safetensors"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    from serve_harness import write_safetensors
    names = ("observation/image", "observation/wrist_image", "observation/state")
    write_safetensors(path, dict(zip(names, (*PICTURES, STATE))))
    said = [x for name in names for x in ("-i", f"{name}=@{path}#{name}")]
    out = subprocess.run([PROGRAM, "run", DEMO, "--threads", "1", "--format", "json", "--seed", "7", *said,
                          "-i", "prompt=press the button"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return np.array(json.loads(out.splitlines()[0])["actions"]["act"])


@test
def a_robot_is_driven():
    server = Server(DEMO, "--late-ok", "--seed", "7")
    p, robot = node(f"ws://127.0.0.1:{server.port}"), Robot()
    robot.until(lambda: len(robot.trajectories) > 0)
    first, chunk = robot.trajectories[0], chunk_of_run()
    points = np.array([list(x.positions) for x in first.points])
    check(first.joint_names == JOINTS and points.shape == (4, 4), first)
    check(any(points.tobytes() == chunk[i:i + 4].tobytes() for i in range(13)), points, chunk)
    check([x.time_from_start.sec * 10**9 + x.time_from_start.nanosec for x in first.points] == [i * 250_000_000 for i in range(4)])
    check(first.header.stamp.sec > 0)
    told = robot.told("fresh")
    values = {v.key: v.value for v in told.values}
    check(told.level == b"\0" and values["connected"] == "True" and int(values["requests"]) > 0, told)

    robot.encoding = "16UC1"  # the cameras are set up wrongly
    told = robot.told("16UC1")
    check(told.level != b"\0" and "image: encoding" in told.message, told)
    robot.told("none: ")  # the queue has run dry: there is no action any more
    seen = len(robot.trajectories)
    robot.told("none: ")
    check(len(robot.trajectories) == seen, "nothing is published without an action")
    robot.encoding = "rgb8"
    robot.told("fresh")

    server.end()
    told = robot.told("none: ")
    check(told.level == b"\2", told)
    p.send_signal(signal.SIGINT)
    check(p.wait(30 * SLOW) == 0, p.returncode, p.stderr.read())
    robot.destroy_node()


@test
def a_reset_begins_an_episode():
    server = Server(DEMO, "--late-ok")
    p, robot = node(f"ws://127.0.0.1:{server.port}"), Robot()
    robot.until(lambda: len(robot.trajectories) > 0)
    robot.reset.publish(Bool(data=True))
    before = len(robot.trajectories)
    robot.until(lambda: len(robot.trajectories) > before + 1)
    p.terminate()
    check(p.wait(30 * SLOW) == 0, p.returncode, p.stderr.read())
    robot.destroy_node()
    server.end()


class Secure(Server):
    tls = True


@test
def a_server_with_tls_and_a_key_is_believed():
    key = key_file("a-key-of-a-robot-for-a-test")
    own = [os.path.join(BOX, name) for name in ("own.key", "own.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", own[0],
                    "-out", own[1], "-days", "2", "-subj", "/CN=robot", "-addext", "subjectAltName=DNS:arm"],
                   check=True, capture_output=True)
    os.chmod(own[0], 0o600)
    server = Secure(DEMO, "--late-ok", "--tls-cert", own[1], "--tls-key", own[0], "--key", key)
    said = [("ca_file", own[1]), ("server_name", "arm"), ("key_file", key)]
    for left_out, word in (("ca_file", "certificate"), ("server_name", "127.0.0.1"), ("key_file", "401"), (None, "fresh")):
        p, robot = node(f"wss://127.0.0.1:{server.port}", *(x for n, v in said if n != left_out for x in ("-p", f"{n}:={v}"))), Robot()
        check(word in robot.told(word).message)
        check(len(robot.trajectories) == 0 or not left_out, left_out)
        p.terminate()
        check(p.wait(30 * SLOW) == 0, p.returncode, p.stderr.read())
        robot.destroy_node()
    server.end()


@test
def wrong_parameters_end_it():
    for parameter, word in (("cameras:=['x']", "cameras"), ("joints:=['']", "joints"), ("url:='http://x'", "URL"),
                            ("points:=0", "point"), ("rate_hz:=0.0", "rate_hz"), ("rate_hz:=.nan", "rate_hz"),
                            ("rate_hz:=20", "rate_hz"), ("cameras:=['a b=c']", "a b"), ("key_file:=/nowhere", "key_file"),
                            ("ca_file:=/nowhere", "TLS")):
        p = node("ws://127.0.0.1:1", "-p", parameter)
        said = p.communicate(timeout=30 * SLOW)[1]
        check(p.returncode == 1 and word in said.splitlines()[-1] and "Traceback" not in said, parameter, p.returncode, said)


@test
def pictures_are_read_as_they_lie():
    pixels = PICTURES[0]
    check((tectum_node.picture(image(pixels, padding=5)) == pixels).all())
    check((tectum_node.picture(image(pixels[:, :, ::-1], "bgr8")) == pixels).all())
    check((tectum_node.picture(image(pixels[:, :, :1], "mono8", 3)) == pixels[:, :, :1]).all())
    short = image(pixels)
    short.data = short.data[:-1]
    for wrong, word in ((image(pixels, "yuv422"), "encoding"), (short, "bytes"), (image(pixels[:, :, :1], "rgb8"), "bytes")):
        try:
            tectum_node.picture(wrong)
        except tectum_node.Unusable as error:
            check(word in str(error), error)
        else:
            check(False, word)


@test
def states_are_in_the_robots_order():
    message = JointState(name=["b", "a"], position=[2.0, 1.0])
    check(tectum_node.state(message, ["a", "b"]).tolist() == [1, 2] and tectum_node.state(message, []).tolist() == [2, 1])
    for joints in (["a", "c"], ["b", "a", "d"]):
        try:
            tectum_node.state(message, joints)
        except tectum_node.Unusable as error:
            check(f"'{joints[-1]}'" in str(error), error)
        else:
            check(False, joints)


failed = main()
rclpy.shutdown()
sys.exit(failed)
