/* importance.c - scores memory segments from the attention of one layer and selects the most
 * important.
 *
 * A recall calls it between the two captured pieces of a layer. The attention mass of each row is
 * given by ranges of keys, four for each segment, so every scoring rule finds the sums that it
 * needs without a pass over single keys. Scores are doubles added in a fixed order and ties go to
 * the lower segment, so the selection is reproducible. */
#include "graph/memory/importance.h"

#include <math.h>
#include <string.h>

enum { LAST = 3 }; /* rows and keys that stand for a segment in the published code */

static const char *const names[] = {
#define SCORING(name, text, what) text,
#include "graph/memory/scorings.def"
#undef SCORING
};

const char *tec_scoring_name(enum tec_scoring scoring)
{
    return (unsigned)scoring < TEC_SCORINGS ? names[scoring] : NULL;
}

bool tec_scoring_find(const char *name, enum tec_scoring *out)
{
    for (int i = 0; i < TEC_SCORINGS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum tec_scoring)i;
            return true;
        }
    return false;
}

static const char *const methods[] = {
#define SELECTION(name, text, what) text,
#include "graph/memory/selections.def"
#undef SELECTION
};

const char *tec_selection_name(enum tec_selection selection)
{
    return (unsigned)selection < TEC_SELECTIONS ? methods[selection] : NULL;
}

bool tec_scoring_hops(enum tec_scoring scoring)
{
    return scoring != TEC_SCORING_query_only;
}

void tec_importance_ranges(const struct tec_segment_range *segments, int n_segments, int *ends)
{
    for (int i = 0; i < n_segments; i++, ends += TEC_SEGMENT_RANGES) {
        int begin = segments[i].begin, end = segments[i].end;
        int first = begin < end ? begin + 1 : end, last = end - LAST;
        ends[0] = begin;
        ends[1] = first;
        ends[2] = last > first ? last : first;
        ends[3] = end;
    }
}

enum tec_status tec_importance_create(struct tec_importance *out, int max_segments, int max_hops,
                                      struct tec_arena *arena, struct tec_error *err)
{
    size_t n = (size_t)max_segments + 1, hops = (size_t)max_hops + 1;
    *out = (struct tec_importance){.max_segments = max_segments, .max_hops = max_hops};
    if (max_segments < 0 || max_segments > 1 << 16 || max_hops < 0 || max_hops > TEC_MAX_HOPS)
        return tec_fail(err, TEC_INVALID, "%d segments and %d hops are out of range", max_segments,
                        max_hops);
    out->scores = TEC_NEW(arena, hops * n, double);
    out->relevant = TEC_NEW(arena, hops * n, bool);
    out->from = TEC_NEW(arena, n * n, double);
    out->room = TEC_NEW(arena, 2 * n, double);
    if (!out->scores || !out->relevant || !out->from || !out->room)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to compare %d segments", max_segments);
    return TEC_OK;
}

/* Weight that row r gives to all of segment j, or to it but for its first token. */
static double given(const struct tec_attention_sums *s, int r, int j, bool all)
{
    const float *mass = s->mass + (size_t)r * (size_t)s->ld + (size_t)j * TEC_SEGMENT_RANGES;
    return (all ? (double)mass[1] : 0.0) + (double)mass[2] + (double)mass[3];
}

/* Weight that row r gives to the last tokens of segment j. */
static double given_last(const struct tec_attention_sums *s, int r, int j)
{
    const float *mass = s->mass + (size_t)r * (size_t)s->ld + (size_t)j * TEC_SEGMENT_RANGES;
    bool whole = s->segments[j].end - s->segments[j].begin <= LAST;
    return (double)mass[3] + (whole ? (double)mass[1] : 0.0);
}

/* The segment that a token belongs to; n_segments for the query, -1 for none. Segments are
 * ascending. */
static int segment_of(const struct tec_attention_sums *s, int token)
{
    if (token >= s->query.begin && token < s->query.end)
        return s->n_segments;
    int low = 0, high = s->n_segments;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->segments[middle].end <= token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_segments && s->segments[low].begin <= token ? low : -1;
}

static struct tec_segment_range place_of(const struct tec_attention_sums *s, int x)
{
    return x == s->n_segments ? s->query : s->segments[x];
}

/* out->from: a[x][j], each row's weights times what it sees where `lift`. */
static void gather(struct tec_importance *out, const struct tec_attention_sums *s, bool lift)
{
    int n = s->n_segments;
    memset(out->from, 0, (size_t)(n + 1) * (size_t)n * sizeof *out->from);
    for (int r = 0; r < s->rows; r++) {
        int x = segment_of(s, s->token[r]);
        if (x < 0 || (x < n && !s->live[x]))
            continue;
        struct tec_segment_range p = place_of(s, x);
        double share = 1.0 / ((double)s->heads * (p.end - p.begin));
        share *= lift ? s->token[r] + 1 : 1;
        double *line = out->from + (size_t)x * (size_t)n;
        for (int j = 0; j < n && j <= x; j++)
            line[j] += share * given(s, r, j, true) / (s->segments[j].end - s->segments[j].begin);
    }
}

/* True if row r is one of the last rows of segment x (n: the query), which represent it in the
 * published code. */
static bool stands(const struct tec_attention_sums *s, int r, int x)
{
    struct tec_segment_range p = place_of(s, x);
    return s->token[r] < p.end && s->token[r] >= p.end - LAST && s->token[r] >= p.begin;
}

/* out->from as the published code weighs: from segment x to segment j what the last rows of x give
 * to keys of j before them, and what rows of j behind x give to the last keys of x. */
static void gather_code(struct tec_importance *out, const struct tec_attention_sums *s)
{
    int n = s->n_segments;
    memset(out->from, 0, (size_t)(n + 1) * (size_t)n * sizeof *out->from);
    for (int r = 0; r < s->rows; r++) {
        int x = segment_of(s, s->token[r]);
        if (x < 0 || (x < n && !s->live[x]))
            continue;
        bool first = x < n && s->token[r] == s->segments[x].begin;
        for (int j = 0; j < n && j < x; j++) {
            if (stands(s, r, x))
                out->from[(size_t)x * (size_t)n + (size_t)j] += given(s, r, j, false);
            if (x < n && !first)
                out->from[(size_t)j * (size_t)n + (size_t)x] += given_last(s, r, j);
        }
    }
}

/* The best `count` live segments by score. */
static void best(const struct tec_attention_sums *s, const double *score, int count, bool *out)
{
    memset(out, 0, (size_t)s->n_segments * sizeof *out);
    for (int k = 0; k < count; k++) {
        int at = -1;
        for (int j = 0; j < s->n_segments; j++)
            if (s->live[j] && !out[j] && (at < 0 || score[j] > score[at]))
                at = j;
        if (at < 0)
            return;
        out[at] = true;
    }
}

static void hop_mean(const struct tec_importance *im, const struct tec_attention_sums *s,
                     const bool *relevant, double *score)
{
    int n = s->n_segments, sources = 1;
    memcpy(score, im->from + (size_t)n * (size_t)n, (size_t)n * sizeof *score);
    for (int x = 0; x < n; x++) {
        if (!relevant[x])
            continue;
        sources++;
        for (int j = 0; j < n; j++)
            score[j] += x == j ? 0.0 : im->from[(size_t)x * (size_t)n + (size_t)j];
    }
    for (int j = 0; j < n; j++)
        score[j] /= sources;
}

/* Scores by `lift`: the mean over the query and the relevant segments behind j. */
static void hop_lift(const struct tec_importance *im, const struct tec_attention_sums *s,
                     const bool *relevant, double *score)
{
    int n = s->n_segments, behind = 0;
    for (int j = n - 1; j >= 0; j--) {
        double sum = im->from[(size_t)n * (size_t)n + (size_t)j];
        for (int x = j + 1; x < n; x++)
            sum += relevant[x] ? im->from[(size_t)x * (size_t)n + (size_t)j] : 0.0;
        score[j] = sum / (1 + behind);
        behind += relevant[j] ? 1 : 0;
    }
}

/* Scores of the published code; `last` holds the scores of the hop before. */
static void hop_code(const struct tec_importance *im, const struct tec_attention_sums *s,
                     const double *last, double *score)
{
    int n = s->n_segments;
    for (int j = 0; j < n; j++)
        score[j] = im->from[(size_t)n * (size_t)n + (size_t)j];
    for (int x = 0; x < n; x++)
        for (int j = 0; s->live[x] && j < n; j++)
            score[j] += LAST * last[x] * im->from[(size_t)x * (size_t)n + (size_t)j];
    for (int j = 0; j < n; j++)
        score[j] *= s->live[j] ? 1.0 / ((double)s->heads * LAST) : 0.0;
}

static void hop(const struct tec_importance *im, const struct tec_attention_sums *s,
                enum tec_scoring scoring, int at, double *score)
{
    size_t n = (size_t)s->n_segments;
    const double *last = im->scores + ((size_t)at - 1) * n;
    const bool *relevant = im->relevant + ((size_t)at - 1) * n;
    if (scoring == TEC_SCORING_code)
        hop_code(im, s, last, score);
    else if (scoring == TEC_SCORING_lift)
        hop_lift(im, s, relevant, score);
    else
        hop_mean(im, s, relevant, score);
}

static bool seen_before(const struct tec_importance *im, size_t n, int at)
{
    for (int i = 0; i < at; i++)
        if (memcmp(im->relevant + (size_t)i * n, im->relevant + (size_t)at * n, n) == 0)
            return true;
    return false;
}

const bool *tec_importance_select(struct tec_importance *out, const struct tec_attention_sums *seen,
                                  enum tec_scoring scoring, int count)
{
    size_t n = (size_t)seen->n_segments;
    double *scores = out->scores;
    bool code = scoring == TEC_SCORING_code;
    if (code)
        gather_code(out, seen);
    else
        gather(out, seen, scoring == TEC_SCORING_lift);
    memcpy(scores, out->from + n * n, n * sizeof *scores);
    for (size_t j = 0; code && j < n; j++)
        scores[j] *= seen->live[j] ? 1.0 / ((double)seen->heads * LAST) : 0.0;
    best(seen, scores, count, out->relevant);
    out->n_hops = 1;
    while (tec_scoring_hops(scoring) && out->n_hops <= out->max_hops) {
        int at = out->n_hops++;
        hop(out, seen, scoring, at, scores + (size_t)at * n);
        best(seen, scores + (size_t)at * n, count, out->relevant + (size_t)at * n);
        if (seen_before(out, n, at))
            break;
    }
    return out->relevant + (size_t)(out->n_hops - 1) * n;
}

void tec_recompute_counts(const double *ratios, int layers, int segments, int *counts)
{
    bool any = false;
    for (int i = 0; i < layers; i++)
        any = any || ratios[i] > 0.0;
    int most = any ? segments : 0;
    for (int i = 0; i < layers; i++) {
        int n = i == 0 ? most : (int)floor(ratios[i] * segments + 1e-9);
        if (i > 0 && n < 1)
            n = ratios[i] > 0.0 ? 1 : 0;
        most = n < most ? n : most;
        counts[i] = most;
    }
}
