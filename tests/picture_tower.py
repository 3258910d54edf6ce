"""picture_tower.py - the picture side of SmolVLM for tests/text_models.py: sizes, weights and a forward in numpy.

The formulas are those of tests/golden/smolvla/README.md, section 3, written down a second time. Sizes are drawn so that
what the golden case does not show is seen: pixels that fill no patch, a table of positions of another side than the
picture's, other shuffles.
"""
import numpy

AT = "model.vision_model."
CONNECTOR = "model.connector.modality_projection.proj.weight"


def drawn(pick):
    """The sizes of a tower, in words of our own: `side` is the picture's, `stored` that of the table of positions."""
    patch, shuffle, heads = int(pick(3, 4, 7)), int(pick(1, 2, 3)), int(pick(2, 3, 4))
    grid = shuffle * int(pick(2, 3)) if shuffle > 1 else int(pick(3, 4))
    t = {"patch": patch, "shuffle": shuffle, "grid": grid, "heads": heads, "width": heads * int(pick(6, 8, 12)),
         "mlp": int(pick(40, 56)), "layers": int(pick(1, 2, 3)), "side": grid * patch + int(pick(0, 0, patch - 1))}
    t["table"] = int(pick(grid, grid, grid - 1, grid + 1, 2 * grid))
    t["stored"] = t["side"] if t["table"] == grid else t["table"] * patch
    t["rows"] = (grid // shuffle) ** 2
    return t


def config(t, new):
    """vision_config; published files leave out what is the class's default."""
    j = {"hidden_size": t["width"], "intermediate_size": t["mlp"], "num_hidden_layers": t["layers"],
         "num_attention_heads": t["heads"], "image_size": t["stored"], "patch_size": t["patch"]}
    if new:
        j.update(hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-6, num_channels=3, attention_dropout=0.0)
    return j


def weights(t, text_width, matrix, vector):
    """Draw the tower's tensors with the caller's matrix(name, rows, cols) and vector(name, n, mean)."""
    d = t["width"]
    matrix(AT + "embeddings.patch_embedding.weight", d, 3 * t["patch"] ** 2)
    vector(AT + "embeddings.patch_embedding.bias", d, 0.0)
    matrix(AT + "embeddings.position_embedding.weight", t["table"] ** 2, d)
    for i in range(t["layers"]):
        at = AT + f"encoder.layers.{i}."
        for name, rows, cols in (("self_attn.q_proj", d, d), ("self_attn.k_proj", d, d), ("self_attn.v_proj", d, d),
                                 ("self_attn.out_proj", d, d), ("mlp.fc1", t["mlp"], d), ("mlp.fc2", d, t["mlp"])):
            matrix(at + name + ".weight", rows, cols)
            vector(at + name + ".bias", rows, 0.0)
        for name in ("layer_norm1", "layer_norm2"):
            vector(at + name + ".weight", d, 1.0)
            vector(at + name + ".bias", d, 0.0)
    vector(AT + "post_layernorm.weight", d, 1.0)
    vector(AT + "post_layernorm.bias", d, 0.0)
    matrix(CONNECTOR, text_width, d * t["shuffle"] ** 2)


def positions(t):
    """The row of the table for each patch, by shares of a side in float32."""
    one, n, m = numpy.float32(1), t["table"], t["grid"]
    borders = numpy.arange(1, n, dtype=numpy.float32) / numpy.float32(n)
    shares = numpy.minimum(numpy.arange(m, dtype=numpy.float32) / numpy.float32(m), one - numpy.float32(1e-6))
    line = (borders[None] <= shares[:, None]).sum(1)
    return (line[:, None] * n + line[None]).ravel()


def rows(t, w, picture, kind):
    """The connector's rows of a picture u8 [side, side, 3]; t["through"], where it is there, are other layers."""
    def linear(x, name):
        m = w[name + ".weight"].astype(kind)
        return x @ m.reshape(len(m), -1).T + w[name + ".bias"].astype(kind)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + kind(1e-6))
        return x * w[name + ".weight"].astype(kind) + w[name + ".bias"].astype(kind)

    def attention(x, at):
        n, head = len(x), t["width"] // t["heads"]
        q, k, v = (linear(x, at + name).reshape(n, t["heads"], head) for name in ("q_proj", "k_proj", "v_proj"))
        s = numpy.einsum("qhd,khd->hqk", q, k) * kind(head ** -0.5)
        p = numpy.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return linear(numpy.einsum("hqk,khd->qhd", p, v).reshape(n, -1), at + "out_proj")

    g, p, s, d = t["grid"], t["patch"], t["shuffle"], t["width"]
    pixels = (picture[:g * p, :g * p].astype(kind) / kind(255) - kind(0.5)) / kind(0.5)
    patches = pixels.reshape(g, p, g, p, 3).transpose(0, 2, 4, 1, 3).reshape(g * g, -1)
    x = linear(patches, AT + "embeddings.patch_embedding")
    x = x + w[AT + "embeddings.position_embedding.weight"].astype(kind)[positions(t)]
    for i in range(0 if "through" in t else t["layers"]):
        at = AT + f"encoder.layers.{i}."
        x = x + attention(norm(x, at + "layer_norm1"), at + "self_attn.")
        y = linear(norm(x, at + "layer_norm2"), at + "mlp.fc1")
        y = kind(0.5) * y * (1 + numpy.tanh(kind(numpy.sqrt(2 / numpy.pi)) * (y + kind(0.044715) * y ** 3)))
        x = x + linear(y, at + "mlp.fc2")
    x = t["through"](x, w, kind) if "through" in t else norm(x, AT + "post_layernorm")
    squares = x.reshape(g // s, s, g // s, s, d).transpose(0, 2, 1, 3, 4).reshape(t["rows"], -1)
    return squares @ w[CONNECTOR].astype(kind).T
