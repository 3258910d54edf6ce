"""oft_formulas.py - OpenVLA-OFT's row of the state against its published formulas, from a robot's state to
its commands: `tectum run` with random projectors, heads and statistics, beside the same in float64.

usage: oft_formulas.py PROGRAM FOLDER GOLDEN; FOLDER becomes a checkpoint, GOLDEN is tests/golden/openvla.
Prints TAP, numbered by itself.

The formulas are those of moojink/openvla-oft: normalisation by bounds_q99, ProprioProjector, the place of
its row behind the patches, attention in both directions, L1RegressionActionHead with its MLPResNet, and
un-normalisation. Rows of the patches are the golden case's, which no state changes.
"""

import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import every_tensor  # noqa: E402

PROGRAM, FOLDER, GOLDEN = sys.argv[1:4]
WIDTH, HEADS, LAYERS, ROWS, COLUMNS, STATE = 64, 4, 2, 8, 7, 8
PROMPT, CASE = "open the drawer", "l1_2img"
BOUND = 1e-5
draw = random.Random(20)


def numbers(tensor):
    """Rows of a matrix, or one row: float64."""
    dtype, shape, data = tensor
    if dtype == "BF16":
        data = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
    flat = struct.unpack("<%df" % (len(data) // 4), data)
    return flat if len(shape) == 1 else [flat[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]


def drawn(shape, middle, spread):
    values = [draw.gauss(middle, spread) for _ in range(math.prod(shape))]
    return "F32", shape, struct.pack("<%df" % len(values), *values)


def linear_of(tensors, name, out, fan):
    tensors[name + ".weight"] = drawn([out, fan], 0.0, fan ** -0.5)
    tensors[name + ".bias"] = drawn([out], 0.0, 0.3)


def norm_of(tensors, name, width):
    tensors[name + ".weight"], tensors[name + ".bias"] = drawn([width], 1.0, 0.2), drawn([width], 0.0, 0.2)


# --- random parts, and statistics that say what is masked -----------------------------------------

projector, head = {}, {}
linear_of(projector, "fc1", WIDTH, STATE)
linear_of(projector, "fc2", WIDTH, WIDTH)
norm_of(head, "model.layer_norm1", WIDTH * COLUMNS)
linear_of(head, "model.fc1", WIDTH, WIDTH * COLUMNS)
for block in range(2):
    norm_of(head, "model.mlp_resnet_blocks.%d.ffn.0" % block, WIDTH)
    linear_of(head, "model.mlp_resnet_blocks.%d.ffn.1" % block, WIDTH, WIDTH)
norm_of(head, "model.layer_norm2", WIDTH)
linear_of(head, "model.fc2", COLUMNS, WIDTH)

for name in os.listdir(GOLDEN + "/tiny/checkpoint"):
    shutil.copyfile(os.path.join(GOLDEN, "tiny/checkpoint", name), os.path.join(FOLDER, name))
every_tensor.write(FOLDER + "/proprio_projector.safetensors", projector)
every_tensor.write(FOLDER + "/action_head.safetensors", head)
config = json.load(open(FOLDER + "/config.json"))
stats = config["norm_stats"]["bridge_orig"]
for part in "proprio", "action":
    n = len(stats[part]["q01"])
    stats[part]["q01"] = [draw.uniform(-2, 0) for _ in range(n)]
    stats[part]["q99"] = [low + draw.uniform(0.5, 3) for low in stats[part]["q01"]]
config["norm_stats"] = {"libero_spatial": stats}
json.dump(config, open(FOLDER + "/config.json", "w"))

weights = {}
for name in os.listdir(FOLDER):
    if name.startswith("model-") and name.endswith(".safetensors"):
        weights |= every_tensor.read(os.path.join(FOLDER, name))
patches = numbers(every_tensor.read(GOLDEN + "/oft/expected.safetensors")[CASE + ".projector.out"])
ids = json.load(open(GOLDEN + "/oft/case.json"))["variants"][CASE]["input_ids_extended"]


# --- the formulas ---------------------------------------------------------------------------------

def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def linear(part, name, x):
    w, bias = numbers(part[name + ".weight"]), part.get(name + ".bias")
    bias = numbers(bias) if bias else [0.0] * len(w)
    return [[dot(row, line) + b for line, b in zip(w, bias)] for row in x]


def layer_norm(part, name, x):
    w, b, out = numbers(part[name + ".weight"]), numbers(part[name + ".bias"]), []
    for row in x:
        mean = sum(row) / len(row)
        scale = (sum((v - mean) ** 2 for v in row) / len(row) + 1e-5) ** -0.5
        out.append([(v - mean) * scale * g + h for v, g, h in zip(row, w, b)])
    return out


def rms_norm(name, x):
    w = numbers(weights[name + ".weight"])
    return [[v * (dot(row, row) / len(row) + 1e-6) ** -0.5 * g for v, g in zip(row, w)] for row in x]


def add(x, y):
    return [[a + b for a, b in zip(p, q)] for p, q in zip(x, y)]


def relu(x):
    return [[max(v, 0.0) for v in row] for row in x]


def turned(row, position):
    """Llama's rotary embedding: entry i of a head turns with entry i + half."""
    half, out = WIDTH // HEADS // 2, list(row)
    for h in range(HEADS):
        for i in range(half):
            angle = position * 10000.0 ** (-i / half)
            a, b = h * 2 * half + i, h * 2 * half + half + i
            out[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
            out[b] = row[b] * math.cos(angle) + row[a] * math.sin(angle)
    return out


def attention(prefix, x):
    q, k, v = (linear(weights, prefix + name, x) for name in ("q_proj", "k_proj", "v_proj"))
    q, k = ([turned(row, at) for at, row in enumerate(rows)] for rows in (q, k))
    d, out = WIDTH // HEADS, [[] for _ in x]
    for h in range(HEADS):
        part = slice(h * d, (h + 1) * d)
        keys, values = [row[part] for row in k], list(zip(*(row[part] for row in v)))
        for i, row in enumerate(q):
            scores = [dot(row[part], key) * d ** -0.5 for key in keys]  # every row sees every row
            top = max(scores)
            shares = [math.exp(s - top) for s in scores]
            total = sum(shares)
            out[i] += [dot(shares, column) / total for column in values]
    return linear(weights, prefix + "o_proj", out)


def decoder(x):
    for i in range(LAYERS):
        prefix = "language_model.model.layers.%d." % i
        x = add(x, attention(prefix + "self_attn.", rms_norm(prefix + "input_layernorm", x)))
        y = rms_norm(prefix + "post_attention_layernorm", x)
        gate, up = linear(weights, prefix + "mlp.gate_proj", y), linear(weights, prefix + "mlp.up_proj", y)
        y = [[g / (1.0 + math.exp(-g)) * u for g, u in zip(p, q)] for p, q in zip(gate, up)]
        x = add(x, linear(weights, prefix + "mlp.down_proj", y))
    return rms_norm("language_model.model.norm", x)


def normalised(state):
    s = stats["proprio"]
    return [min(max(2.0 * (x - low) / (high - low + 1e-8) - 1.0, -1.0), 1.0)
            for x, low, high in zip(state, s["q01"], s["q99"])]


def proprio(state):
    x = linear(projector, "fc1", [normalised(state)])
    x = [[v * 0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in row] for row in x]
    return linear(projector, "fc2", x)


def actions(state):
    """The chunk [ROWS][COLUMNS], its last column before the robot makes it a command."""
    embed = numbers(weights["language_model.model.embed_tokens.weight"])
    text = [embed[i] for i in ids]
    blank = [[0.0] * WIDTH for _ in range(ROWS * COLUMNS)]
    hidden = decoder(text[:1] + patches + proprio(state) + text[1:] + blank + [embed[2]])
    first = len(patches) + len(ids)  # the row of the last id of the prompt
    flat = [v for row in hidden[first : first + ROWS * COLUMNS] for v in row]
    x = [flat[i * WIDTH * COLUMNS : (i + 1) * WIDTH * COLUMNS] for i in range(ROWS)]
    x = relu(linear(head, "model.fc1", layer_norm(head, "model.layer_norm1", x)))
    for block in range(2):
        ffn = "model.mlp_resnet_blocks.%d.ffn." % block
        x = add(x, relu(linear(head, ffn + "1", layer_norm(head, ffn + "0", x))))
    x = linear(head, "model.fc2", layer_norm(head, "model.layer_norm2", x))
    s = stats["action"]
    return [[0.5 * (v + 1.0) * (high - low + 1e-8) + low if use else v
             for v, low, high, use in zip(row, s["q01"], s["q99"], s["mask"])] for row in x]


# --- the program ----------------------------------------------------------------------------------

def run(state):
    pictures = GOLDEN + "/oft/inputs.safetensors"
    p = subprocess.run(
        [PROGRAM, "run", "pipelines/openvla_oft_libero.lua", "--weights", FOLDER, "--dtype", "f32", "--device",
         "cpu", "--format", "json", "-i", "observation/image=@%s#image.0" % pictures,
         "-i", "observation/wrist_image=@%s#image.1" % pictures, "-i", "prompt=" + PROMPT,
         "-i", "observation/state=" + json.dumps(state)], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout.splitlines()[0])["actions"]["act"]


def farthest(got, want):
    return max(abs(a - b) for x, y in zip(got, want) for a, b in zip(x[:6], y[:6]))


failed = 0
wants = []
# The second state is beyond the range of three entries, which the model sees at its ends.
low, high = stats["proprio"]["q01"], stats["proprio"]["q99"]
inside = [struct.unpack("<f", struct.pack("<f", a + (b - a) * draw.random()))[0] for a, b in zip(low, high)]
for n, state in enumerate((inside, [9.0, -9.0, *inside[2:7], 7.5]), 1):
    want, got = actions(state), run(state)
    wants.append(want)
    far = farthest(got, want)
    shut = all(a[6] == (-1 if b[6] > 0.5 else 1) for a, b in zip(got, want))
    good = len(got) == ROWS and far < BOUND and shut
    failed |= not good
    print("%s %d - a state becomes the chunk of the published formulas%s" % (
        "ok" if good else "not ok", n, "" if good else ": %g away, gripper %s" % (far, shut)))
good = farthest(*wants) > 1000 * BOUND
failed |= not good
print("%s 3 - another state is another chunk" % ("ok" if good else "not ok"))
print("1..3")
sys.exit(failed)
