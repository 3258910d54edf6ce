"""serve_openpi.py - the unmodified openpi-client package against `tectum serve`.

usage: python3 tests/serve_openpi.py PORT [N]    against a server of the bundled demo
Skips where the package cannot be imported. Prints TAP, and the round trip's quantiles.
"""

import sys
import time

try:
    import numpy as np
    from openpi_client import action_chunk_broker, websocket_client_policy
except ImportError as e:
    print("1..0 # SKIP", e)
    sys.exit(0)

PREFIX = "observation/"
n, failed = 0, 0


def ok(good, what):
    global n, failed
    n, failed = n + 1, failed + (not good)
    print("%sok %d - %s" % ("" if good else "not ", n, what))


def observation(rng, dtype=np.float64):
    return {PREFIX + "image": rng.integers(0, 256, (64, 64, 3), dtype=np.uint8),
            PREFIX + "wrist_image": rng.integers(0, 256, (64, 64, 3), dtype=np.uint8),
            PREFIX + "state": np.array([0.0, 0.6, 0.2, 1.0], dtype), "prompt": "press the button"}


def main():
    rng = np.random.default_rng(1)
    policy = websocket_client_policy.WebsocketClientPolicy("127.0.0.1", int(sys.argv[1]),
                                                           api_key="anything")
    ok(list(policy.get_server_metadata()) == ["tectum"], "metadata")
    first = policy.infer(observation(rng))
    ok(sorted(first) == ["actions", "policy_timing", "server_timing"], "keys of a reply")
    ok(first["actions"].shape == (16, 4) and first["actions"].dtype == np.float64, "actions")
    ok("prev_total_ms" in policy.infer(observation(rng, np.float32))["server_timing"],
       "the second reply tells of the cycle before")
    obs = observation(rng)
    obs["tectum"] = {"seed": 5, "tasks": ["action", "text"]}
    a, b = policy.infer(obs), policy.infer(obs)
    ok((a["actions"] == b["actions"]).all() and a["tectum"]["text"] == b["tectum"]["text"],
       "one seed, one result: " + a["tectum"]["text"])
    obs = observation(rng)
    obs["prompt"] = np.array("open the drawer")
    ok(policy.infer(obs)["actions"].shape == (16, 4), "a prompt as an array of rank 0")
    broker = action_chunk_broker.ActionChunkBroker(policy, action_horizon=8)
    ok(all(broker.infer(observation(rng))["actions"].shape == (4,) for _ in range(20)),
       "an action chunk broker")
    times = []
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 50):
        obs = observation(rng)
        begin = time.perf_counter()
        reply = policy.infer(obs)
        times.append((time.perf_counter() - begin) * 1e3 - reply["server_timing"]["infer_ms"])
    print("# round trip without infer: p50 %.3f ms, p99 %.3f ms" % (
        np.quantile(times, 0.5), np.quantile(times, 0.99)))
    try:
        policy.infer({"prompt": "x"})
        ok(False, "an error is raised")
    except RuntimeError as e:
        ok("Error in inference server" in str(e) and "image" in str(e), "an error is raised")
    print("1..%d" % n)
    sys.exit(failed > 0)


main()
