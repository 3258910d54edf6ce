/* keep_runs.c - the runs of a case of kind "selective". Tensors are compared with the sets of the
 * case (its errors are of those); sets and tokens with what the engine chooses by itself. What bf16
 * is not held to is a line that says so. */
#include "base/json_text.h"
#include "kernels/bf16.h"
#include "tests/judge/keep.h"
#include "tests/judge/pi_text.h"

#include <stdlib.h>
#include <string.h>

const char *tec_keep_name(struct tec_keep *j, int layer, const char *what)
{
    struct tec_arena *arena = j->pi->v->arena;
    const char *name = layer < 0 ? tec_arena_printf(arena, "%s.%s", j->name, what)
                                 : tec_arena_printf(arena, "%s.layer%d.%s", j->name, layer, what);
    return name ? name : "?";
}

static bool find_kept(void *self, int layer, int segment, const void **k, const void **v)
{
    const struct tec_keep *j = self;
    const struct tec_kv_shape *s = &j->plan->kept.shape;
    size_t row = (size_t)s->kv_heads * (size_t)s->head_dim * (s->bf16 ? 2 : 4);
    size_t at = segment < j->n_segments ? (size_t)j->segments[segment].begin * row : 0;
    *k = j->store->k[layer] + at;
    *v = j->store->v[layer] + at;
    return true;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static json_t *list_of(const bool *set, int n)
{
    json_t *list = json_array();
    for (int u = 0; u < n; u++)
        if (set[u])
            json_array_append_new(list, json_integer(u));
    return list;
}

static const char no_bound[] = "not judged: the case gives no error of bf16";

static bool bf16(const struct tec_keep *j)
{
    return strcmp(j->pi->v->dtype, "bf16") == 0;
}

/* Weights are below 1 and float32 where they are summed. */
static const double WEIGHTS = 1e-5;

static void compare_scores(struct tec_keep *j, const struct tec_recall *r, int layer)
{
    const struct tec_importance *im = &r->importance;
    size_t n = (size_t)j->n_segments;
    if (bf16(j)) {
        tec_verify_unjudged(j->pi->v, tec_keep_name(j, layer, "scores"), no_bound);
        if (tec_tensors_find(j->pi->expected, tec_keep_name(j, layer, "unit_attention")))
            tec_verify_unjudged(j->pi->v, tec_keep_name(j, layer, "unit_attention"), no_bound);
        return;
    }
    tec_keep_near(j, tec_keep_name(j, layer, "scores"), im->scores, (size_t)im->n_hops * n,
                  WEIGHTS);
}

/* What segments and query give to segments, as the paper's rule sums it. */
static void compare_attention(struct tec_keep *j, const struct tec_recall *r, int layer)
{
    size_t n = (size_t)j->n_segments;
    const char *name = tec_keep_name(j, layer, "unit_attention");
    if (tec_tensors_find(j->pi->expected, name))
        tec_keep_near(j, name, r->importance.from, (n + 1) * n, WEIGHTS);
}

static void watch(void *user, const struct tec_recall *r, int layer, bool chosen)
{
    struct tec_keep *j = user;
    if (!chosen) {
        int n = r->n_rows[layer % 2], first = j->first_row[layer];
        memcpy(j->layer_rows + first, r->token[layer % 2], (size_t)n * sizeof(int));
        qsort(j->layer_rows + first, (size_t)n, sizeof(int), ascending);
        j->first_row[layer + 1] = first + n;
        return;
    }
    if (j->attention)
        compare_attention(j, r, layer);
    if (j->judged)
        compare_scores(j, r, layer);
    if (j->attention || j->judged)
        return;
    json_t *hops = json_array();
    for (int h = 0; h < r->importance.n_hops; h++)
        json_array_append_new(
            hops,
            list_of(r->importance.relevant + (size_t)h * (size_t)j->n_segments, j->n_segments));
    json_array_append_new(j->hops, json_pack("{s:i,s:o}", "layer", layer, "relevant", hops));
}

static void read_slots(struct tec_keep *j, int layer, bool values, const int *tokens, int n,
                       float *out)
{
    const struct tec_kv_space *s = &j->plan->space;
    size_t row = (size_t)s->shape.kv_heads * (size_t)s->shape.head_dim;
    size_t bytes = row * (s->shape.bf16 ? 2 : 4);
    const unsigned char *from = (values ? s->v : s->k)[layer];
    unsigned char *line = tec_arena_push(j->pi->v->arena, bytes, 1, 16);
    for (int i = 0; line && i < n; i++, out += row) {
        size_t slot = (size_t)j->plan->prefixes.first[j->region] + (size_t)tokens[i];
        tec_device_download(j->plan->device, TEC_STREAM_MAIN, line, from + slot * bytes, bytes);
        for (size_t c = 0; c < row; c++)
            out[c] = s->shape.bf16 ? tec_bf16_float(((const uint16_t *)(const void *)line)[c])
                                   : ((const float *)(const void *)line)[c];
    }
}

/* Tensors of a layer that the case names. */
static void compare_layer(struct tec_keep *j, int layer)
{
    struct tec_pi *pi = j->pi;
    const int *tokens = j->layer_rows + j->first_row[layer];
    int n = j->first_row[layer + 1] - j->first_row[layer];
    const struct tec_kv_shape *s = &j->plan->space.shape;
    size_t row = (size_t)s->kv_heads * (size_t)s->head_dim, got;
    float *values = TEC_NEW(pi->v->arena, (size_t)n * row + 1, float);
    const char *name = tec_keep_name(j, layer, "rows");
    if (tec_tensors_find(pi->expected, name)) {
        size_t n_want = 0;
        const int *want = tec_pi_ids(pi, name, &n_want);
        tec_verify_compared(pi->v, name);
        tec_verify_ids(pi->v, name, tokens, (size_t)n, want, want ? n_want : 0);
    }
    for (int i = 0; values && i < 2; i++) {
        name = tec_keep_name(j, layer, i ? "v" : "k_rope");
        if (!tec_tensors_find(pi->expected, name))
            continue;
        read_slots(j, layer, i, tokens, n, values);
        tec_pi_compare(pi, name, values, (size_t)n * row, NULL);
    }
    name = tec_keep_name(j, layer, "query_out");
    if (!tec_tensors_find(pi->expected, name))
        return;
    const float *out = tec_pi_tap(pi, j->recall.part,
                                  tec_arena_printf(pi->v->arena, "recall.layer%d.hidden", layer), 0,
                                  j->n - j->query, &got);
    tec_pi_compare(pi, name, out, out ? got : 0, NULL);
}

static void compare_json(struct tec_keep *j, const char *key, const json_t *got)
{
    const json_t *want = json_object_get(j->run, key);
    bool same = json_equal(got, want);
    char *text = same ? NULL : tec_json_whole(got, JSON_COMPACT);
    tec_verify_report(j->pi->v, tec_keep_name(j, -1, key), same ? 0.0 : 1.0, 0.0, 0.0, same, NULL,
                      text);
    free(text);
}

/* Segments of each layer and the hops that led there. */
static void compare_sets(struct tec_keep *j)
{
    json_t *counts = json_array(), *sets = json_array();
    for (int l = 0; l < j->layers; l++) {
        json_t *set = json_array();
        json_array_append_new(counts, json_integer(j->recall.counts[l]));
        for (int u = 0, i = j->first_row[l]; u < j->n_segments; u++) {
            while (i < j->first_row[l + 1] && j->layer_rows[i] < j->segments[u].begin)
                i++;
            if (i < j->first_row[l + 1] && j->layer_rows[i] == j->segments[u].begin)
                json_array_append_new(set, json_integer(u));
        }
        json_array_append_new(sets, set);
    }
    compare_json(j, "counts", counts);
    if (tec_keep_own(j, "same_sets", "sets"))
        compare_json(j, "sets", sets);
    if (bf16(j))
        tec_verify_unjudged(j->pi->v, tec_keep_name(j, -1, "hops"),
                            "not judged: the case says of sets alone what bf16 chooses");
    else
        compare_json(j, "hops", j->hops);
    json_decref(counts);
    json_decref(sets);
}

static void compare_blend(struct tec_keep *j)
{
    const json_t *want = json_object_get(j->run, "selected");
    json_t *got = json_array();
    int check = j->recall.rules->check;
    for (int i = j->first_row[check + 1]; i < j->first_row[check + 2]; i++)
        if (j->layer_rows[i] < j->query)
            json_array_append_new(got, json_integer(j->layer_rows[i]));
    bool same = json_equal(got, want);
    tec_verify_report(j->pi->v, tec_keep_name(j, -1, "selected"), same ? 0.0 : 1.0, 0.0, 0.0, same,
                      NULL, NULL);
    json_decref(got);
    if (!tec_tensors_find(j->pi->expected, tec_keep_name(j, -1, "deviation")))
        return;
    if (bf16(j))
        tec_verify_unjudged(j->pi->v, tec_keep_name(j, -1, "deviation"), no_bound);
    else
        tec_keep_near(j, tec_keep_name(j, -1, "deviation"), j->recall.worst, (size_t)j->query,
                      1e-4);
}

static bool has(const char *name, const char *what)
{
    return strncmp(name, what, strlen(what)) == 0;
}

static void rule_of_keep(struct tec_keep *j, struct tec_recall_rule *rule)
{
    const json_t *ratios = json_object_get(j->run, "ratios");
    const char *last = strrchr(j->name, '.');
    for (int l = 0; l < j->layers; l++)
        j->ratios[l] = json_number_value(json_array_get(ratios, (size_t)l));
    rule->selection = TEC_SELECTION_keep;
    rule->ratios = j->ratios;
    tec_scoring_find(last + 1, &rule->scoring); /* else the ratio's last digits: the paper's */
    j->store = &j->group;
}

/* What a run's name says; false: nothing known. */
static bool rule_of(struct tec_keep *j, struct tec_recall_rule *rule)
{
    *rule = (struct tec_recall_rule){.scoring = TEC_SCORING_paper, .share = 0.16, .check = 1};
    j->store = &j->single;
    if (has(j->name, "keep."))
        rule_of_keep(j, rule);
    else if (has(j->name, "b1."))
        rule->selection = TEC_SELECTION_full;
    else if (has(j->name, "b2."))
        rule->selection = TEC_SELECTION_prefix;
    else if (has(j->name, "b3."))
        rule->selection = TEC_SELECTION_reuse;
    else if (has(j->name, "b4."))
        rule->selection = TEC_SELECTION_cacheblend;
    else if (has(j->name, "b5."))
        rule->selection = TEC_SELECTION_epic;
    else
        return false;
    rule->local = strstr(j->name, "local0") != NULL;
    if (rule->local)
        j->store = &j->group;
    rule->code_mask = strstr(j->name, "code_mask") != NULL;
    rule->first = (int)json_integer_value(json_object_get(j->run, "k"));
    return true;
}

static void force(struct tec_keep *j, struct tec_recall_rule *rule)
{
    const json_t *sets = json_object_get(j->run, "sets");
    memset(j->forced, 0, (size_t)j->layers * (size_t)j->n_segments);
    for (int l = 0; l < j->layers; l++) {
        const json_t *set = json_array_get(sets, (size_t)l);
        for (size_t i = 0; i < json_array_size(set); i++) {
            json_int_t u = json_integer_value(json_array_get(set, i));
            if (u >= 0 && u < j->n_segments)
                j->forced[(size_t)l * (size_t)j->n_segments + (size_t)u] = 1;
        }
    }
    rule->forced = j->forced;
}

static enum tec_status recall(struct tec_keep *j, struct tec_recall_rule *rule, bool judged,
                              struct tec_error *err)
{
    struct tec_recall_input in = {.ids = j->ids,
                                  .pos = j->pos,
                                  .n = j->n,
                                  .segments = j->segments,
                                  .local = j->local,
                                  .n_segments = j->n_segments,
                                  .query = j->query,
                                  .region = j->region};
    const struct tec_recall_source source = {.self = j, .find = find_kept};
    if (rule->selection == TEC_SELECTION_prefix) {
        const struct tec_recall_rule full = {.selection = TEC_SELECTION_full};
        in.ids = j->old_ids;
        j->recall.watch = NULL;
        TEC_TRY(tec_recall_run(&j->recall, &in, &full, &source, err));
        in.ids = j->ids;
        while (rule->reused < j->query && j->ids[rule->reused] == j->old_ids[rule->reused])
            rule->reused++;
    }
    j->judged = judged;
    j->recall.watch = watch;
    j->recall.user = j;
    return tec_recall_run(&j->recall, &in, rule, &source, err);
}

/* With the sets of the run whichever rule chose them: the rules beside the paper's look at less of
 * the attention, or sum it otherwise. */
static enum tec_status judge_attention(struct tec_keep *j, struct tec_recall_rule rule,
                                       struct tec_error *err)
{
    if (bf16(j))
        return TEC_OK; /* compare_scores says why it is not judged */
    rule.scoring = TEC_SCORING_paper;
    j->attention = true;
    enum tec_status status = recall(j, &rule, false, err);
    j->attention = false;
    return status;
}

static enum tec_status judge_run(struct tec_keep *j, struct tec_error *err)
{
    struct tec_recall_rule rule;
    const json_t *tokens = json_object_get(j->run, "tokens");
    int ids[TEC_KEEP_STEPS], n = (int)json_array_size(tokens);
    if (!rule_of(j, &rule) || n > TEC_KEEP_STEPS)
        return tec_fail(err, TEC_UNSUPPORTED, "an unknown run, or one of %d tokens", n);
    for (int i = 0; i < n; i++)
        ids[i] = (int)json_integer_value(json_array_get(tokens, (size_t)i));
    if (rule.selection == TEC_SELECTION_keep) {
        force(j, &rule);
        TEC_TRY(judge_attention(j, rule, err));
    }
    TEC_TRY(recall(j, &rule, true, err));
    for (int l = 0; l < j->layers; l++)
        compare_layer(j, l);
    tec_keep_logits(j, ids, n);
    rule.forced = NULL;
    j->hops = json_array();
    enum tec_status status = recall(j, &rule, false, err);
    if (status == TEC_OK && rule.selection == TEC_SELECTION_keep)
        compare_sets(j);
    json_decref(j->hops);
    TEC_TRY(status);
    if (rule.selection == TEC_SELECTION_cacheblend)
        compare_blend(j);
    if (rule.selection == TEC_SELECTION_prefix) {
        json_t *reused = json_integer(rule.reused);
        compare_json(j, "reused_tokens", reused);
        json_decref(reused);
    }
    tec_keep_tokens(j, ids, n);
    return TEC_OK;
}

enum tec_status tec_keep_runs(struct tec_keep *j, struct tec_error *err)
{
    json_t *runs = json_object_get(j->pi->v->json, "runs");
    json_object_foreach(runs, j->name, j->run)
    {
        enum tec_status status = judge_run(j, err);
        if (status != TEC_OK)
            tec_verify_cannot(j->pi->v, j->name, err);
    }
    return json_object_size(runs) ? TEC_OK : tec_fail(err, TEC_MALFORMED, "the case has no runs");
}
