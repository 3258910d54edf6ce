"""Prefill of a prompt whose memory is partly stored: the reference in float32 of what the engine does, for a batch of prompts.

A prompt is a prefix, memory segments and a query. Every segment has K (before rotation) and V of each layer from when it was read
alone. In layer i the rows of the segments in set i are computed, their fresh K and V seen by all rows behind them; of the other
segments the stored K, rotated to their place in the prompt, and V are used. Sets only shrink; the prefix is never computed, the
query always. Rules 1 to 5 are those of the reference data of the engine (`tectum verify`, family keep); `corrected` is ours.
"""
import random
from dataclasses import dataclass

import torch

from model import rotate

PREFIX, QUERY, ANSWER, PADDING = -1, -2, -3, -4        # what a row is; 0.. is a segment
HOPS = 8


@dataclass
class Batch:
    ids: torch.Tensor           # [prompts, rows]
    segment: torch.Tensor          # [prompts, rows]
    target: torch.Tensor        # [prompts, rows]: the token asked for behind the row, or -1
    segments: list                 # of each prompt: how many


def batch(prompts):
    """prompts: (prefix, [segment], query, answer) as token lists; the answer is forced, row by row."""
    rows = []
    for prefix, segments, query, answer in prompts:
        ids, segment = list(prefix), [PREFIX] * len(prefix)
        for i, u in enumerate(segments):
            ids += u
            segment += [i] * len(u)
        ids += list(query) + list(answer[:-1])
        segment += [QUERY] * len(query) + [ANSWER] * (len(answer) - 1)
        rows.append((ids, segment, [-1] * (len(ids) - len(answer)) + list(answer)))
    width = max(len(r[0]) for r in rows)
    padded = (torch.tensor([r[i] + [fill] * (width - len(r[i])) for r in rows]) for i, fill in enumerate((0, PADDING, -1)))
    return Batch(*padded, [len(p[1]) for p in prompts])


def attend(layer, x, q, k, v, angles, mask):
    """One layer with given q, k, v -> rows behind it, attention weights as a mean over heads."""
    a = layer.self_attn
    score = rotate(q, angles) @ a.spread(rotate(k, angles)).transpose(2, 3) * a.width ** -0.5
    weights = score.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
    x = x + a.o_proj((weights @ a.spread(v)).transpose(1, 2).flatten(2))
    return x + layer.mlp(layer.post_attention_layernorm(x)), weights.mean(1)


@torch.no_grad()
def stored(model, data):
    """K before rotation and V of every layer, each segment and the prefix read alone."""
    n = data.ids.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril() & (data.segment[:, :, None] == data.segment[:, None, :])
    x, angles = model.model.embed_tokens(data.ids), model.angles(torch.arange(n)[None])
    out = []
    for layer in model.model.layers:
        q, k, v = layer.self_attn.project(layer.input_layernorm(x))
        out.append((k, v))
        x, _ = attend(layer, x, q, k, v, angles, mask)
    return out


# --- which segments ----------------------------------------------------------------------------------------------------
def counts(ratios, segments):
    """Segments computed per layer: all in layer 0 unless nothing ever is, then a share of them, at least one, never more."""
    if not any(ratios):
        return [0] * len(ratios)
    out = [segments]
    for r in ratios[1:]:
        out.append(min(out[-1], max(1, int(r * segments + 1e-9)) if r else 0))
    return out


def best(score, live, count):
    return sorted(sorted(live), key=lambda j: -score[j])[:count]


def segment_weights(weights, segment, segments, even):
    """-> [segments + 1, segments]: mean weight that rows of x give to keys of j; the last line is the query's.
    even: weights times the number of keys that the row sees, that is, divided by what an even attention gives."""
    if even:
        weights = weights * torch.arange(1, len(weights) + 1)[:, None]
    member = torch.stack([(segment == i).float() for i in [*range(segments), QUERY]])
    mean = member / member.sum(1, keepdim=True)
    return (mean @ weights @ mean[:segments].T).tolist()


def by_query(a, live, count):
    return best(a[-1], live, count)


def by_hops(a, live, count, seen_only=False):
    """The query's best, then what those and the query attend to, until it repeats. seen_only: a segment is judged by the
    sources behind it alone; those before it cannot attend to it."""
    score, earlier = a[-1], []
    for _ in range(HOPS + 1):
        chosen = best(score, live, count)
        if set(chosen) in earlier:
            break
        earlier.append(set(chosen))
        score = list(score)
        for j in live:
            sources = [x for x in chosen if x != j and (x > j or not seen_only)]
            total = a[-1][j] + sum(a[x][j] for x in sources)
            score[j] = total / (1 + (len(sources) if seen_only else len(chosen)))
    return chosen


def by_list(order):
    """A choice that does not look: the first of a given order."""
    return lambda a, live, count: [j for j in order if j in live][:count]


# Selections by attention: the rule, and whether weights are divided by what an even attention gives (segment_weights). The last two
# are the halves of `corrected` alone.
RULES = {
    "query": (by_query, False),
    "multi-hop": (by_hops, False),
    "corrected": (lambda a, live, count: by_hops(a, live, count, True), True),
    "even alone": (by_hops, True),
    "voters alone": (lambda a, live, count: by_hops(a, live, count, True), False),
}


def choices(name, segments, needed, seed):
    """-> the choice of one prompt, and whether its weights are divided. needed: the segments that the answer needs, for `oracle`."""
    if name in RULES:
        return RULES[name]
    order = list(range(segments))
    random.Random(f"order {seed}").shuffle(order)
    return by_list(order if name == "random" else needed + [j for j in order if j not in needed]), False


# --- the prefill ----------------------------------------------------------------------------------------------------
@torch.no_grad()
def prefill(model, data, store, ratios, choice):
    """-> logits [n, vocab] of the rows with a target, in order; sets of each prompt by layer.
    choice: of each prompt, as `choices` gives it; ratios: of each layer."""
    n = data.ids.shape[1]
    causal = torch.ones(n, n, dtype=torch.bool).tril()[None]
    x, angles = model.model.embed_tokens(data.ids), model.angles(torch.arange(n)[None])
    quota = [counts(ratios, u) for u in data.segments]
    live = [set(range(u)) if q[0] else set() for u, q in zip(data.segments, quota)]
    sets = [[sorted(s)] for s in live]
    always = (data.segment == QUERY) | (data.segment == ANSWER)
    for i, layer in enumerate(model.model.layers):
        fresh = always.clone()
        for b, s in enumerate(live):
            fresh[b] |= torch.isin(data.segment[b], torch.tensor(sorted(s), dtype=data.segment.dtype))
        q, k, v = layer.self_attn.project(layer.input_layernorm(x))
        k, v = (torch.where(fresh[:, None, :, None], new, old) for new, old in zip((k, v), store[i]))
        x, weights = attend(layer, x, q, k, v, angles, causal)
        if i + 1 == len(ratios):
            break
        for b, s in enumerate(live):
            if quota[b][i + 1] < len(s):
                rule, even = choice[b]
                a = segment_weights(weights[b], data.segment[b], data.segments[b], even)
                live[b] = set(rule(a, s, quota[b][i + 1]))
            sets[b].append(sorted(live[b]))
    return model.lm_head(model.model.norm(x[data.target >= 0])), sets
