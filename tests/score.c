/* score.c - tests of texts scored as a tree in one forward: the bytes equal those of each text
 * alone, on any lanes, and of prompt and text prefilled together.
 *
 * They also test requests that choose from a list. */
#include "graph/run/launch/launch_score.h"
#include "kernels/bf16.h"
#include "tests/tiny.h"
#include "tests/told.h"

#include <math.h>
#include <string.h>

enum { PROMPT = 100, TEXTS = 60, LONGEST = 7, IDS = 6, ROOM = PROMPT + LONGEST };

static struct tec_error err;
static struct tiny tiny;
static struct tec_arena arena;
static int ids[TEXTS][LONGEST];
static struct tec_token_text texts[TEXTS];
static float noise[8];
static int n_nodes; /* of lists that requests choose from */

/* There are few ids, so that texts share beginnings and some are the beginning of others. */
static void make_texts(uint64_t seed, int vocab)
{
    uint64_t s = seed * 77 + 5;
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = (struct tec_token_text){ids[i], 1 + tiny_below(&s, LONGEST)};
        for (int k = 0; k < texts[i].n; k++)
            ids[i][k] = (3 + 7 * tiny_below(&s, k < 2 ? IDS : 2)) % vocab;
    }
}

/* --- the tree ------------------------------------------------------------------------------- */

/* The places of the rows above r, from the root's child on, as the spans of its chain say. */
static void check_chain(const struct tec_token_tree *t, const int *parent, int r)
{
    const struct tec_seq *seq = &t->chains[t->chain[r]];
    int slots[LONGEST + 2] = {0}, n = 0, at = r;
    for (int i = 1; i < seq->spans; i++)
        for (int k = 0; k < t->spans[seq->first + i].length && n < t->depth[r]; k++)
            slots[n++] = t->spans[seq->first + i].slot + k;
    CHECK_INT(n, ==, t->depth[r]);
    for (; n > 0; at = parent[at])
        CHECK_INT(slots[--n], ==, at);
    CHECK_INT(at, ==, 0);
}

/* A token behind each text, or none. */
static struct tec_tree_end behind(int token)
{
    return (struct tec_tree_end){token, true};
}

static void check_tree(int n, int end)
{
    struct tec_token_tree t;
    int parent[TEXTS * (LONGEST + 1) + 1] = {0};
    REQUIRE(tec_token_tree_create(&t, texts, n, behind(end), &arena, &err) == TEC_OK);
    parent[0] = -1;
    for (int p = 0; p < t.n_nodes; p++) {
        CHECK((p < t.n_rows) == (t.first[p] < t.first[p + 1]));
        for (int e = t.first[p]; e < t.first[p + 1]; e++) {
            CHECK(e == t.first[p] || t.id[e] > t.id[e - 1]);
            parent[t.next[e]] = p;
            if (t.next[e] < t.n_rows)
                CHECK(t.token[t.next[e]] == t.id[e] && t.depth[t.next[e]] == t.depth[p] + 1);
        }
    }
    for (int r = 0; r < t.n_rows; r++)
        check_chain(&t, parent, r);
    for (int i = 0; i < n; i++) {
        int at = 0;
        for (int k = 0; k < texts[i].n + (end >= 0); k++) {
            int id = k < texts[i].n ? texts[i].ids[k] : end, e = t.first[at];
            while (e < t.first[at + 1] && t.id[e] != id)
                e++;
            REQUIRE(e < t.first[at + 1]);
            at = t.next[e];
        }
        CHECK_INT(t.place[i], ==, at);
    }
    int limit = 2; /* runs of a chain: the prompt, and at most 1 + log2(rows) */
    for (int rows = t.n_rows; rows > 1; rows /= 2)
        limit++;
    for (int c = 0; c < t.n_chains; c++)
        CHECK(t.chains[c].spans <= limit);
}

TEST(trees)
{
    tec_arena_init(&arena, &tiny_heap);
    for (int seed = 0; seed < 50; seed++) {
        make_texts((uint64_t)seed, 1000);
        check_tree(1 + seed % TEXTS, seed % 3 ? -1 : 999);
    }
    struct tec_token_tree t;
    make_texts(1, 1000);
    texts[3].n = 0;
    CHECK(tec_token_tree_create(&t, texts, TEXTS, behind(-1), &arena, &err) == TEC_INVALID);
    CHECK_STR(err.message, "text 4 has 0 tokens; a tree takes 1 .. 1024");
    CHECK(tec_token_tree_create(&t, texts, 0, behind(-1), &arena, &err) == TEC_INVALID);
    tec_arena_finish(&arena);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static void open_scores(bool bf16, int threads, bool taps, const struct tec_token_tree *largest)
{
    const struct tec_device_options d = {
        .kind = tap.device, .threads = threads, .tier = tec_tier_best()};
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "qwen2", .size = "tiny"};
    REQUIRE(went_well(tec_device_open(&tiny.device, &d, &tiny_heap, &err), &err));
    REQUIRE(tec_model_open(&tiny.model, &choice, &tiny_heap, &err) == TEC_OK);
    const struct tec_weights_options w = {.model = tiny.model,
                                          .source = {.seed = 11},
                                          .device = tiny.device,
                                          .bf16 = bf16,
                                          .language = true};
    REQUIRE(tec_weights_load(&tiny.weights, &w, &tiny_heap, &err) == TEC_OK);
    struct tec_plan_spec spec = {.frame_tokens = ROOM,
                                 .text_tokens = ROOM,
                                 .request_slots = 2,
                                 .new_tokens = LONGEST + 1,
                                 .isolated = true,
                                 .taps = taps,
                                 .trie_nodes = n_nodes,
                                 .n_batches = 1,
                                 .batches = {2},
                                 .max_k = LONGEST + 1};
    spec.trees = (struct tec_score_limits){.rows = largest->n_rows,
                                           .entries = largest->n_entries,
                                           .chains = largest->n_chains,
                                           .spans = largest->n_spans};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = tiny.model,
                                       .weights = tiny.weights,
                                       .source = {.seed = 11},
                                       .device = tiny.device};
    REQUIRE(went_well(tec_plan_create(&tiny.plan, &in, &tiny_heap, &err), &err));
}

static int prompt[ROOM];

static void make_prompt(int vocab)
{
    uint64_t s = 99;
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = 3 + tiny_below(&s, vocab - 3);
}

/* Prefill the prompt and what follows it into region 0. */
static void read_prompt(const struct tec_token_text *more, int n)
{
    struct tec_replay replay = {0};
    for (int i = 0; i < n; i++)
        prompt[PROMPT + i] = more->ids[i];
    const struct tec_prefix_input in = {.n_text = PROMPT + n, .ids = prompt};
    const struct tec_action_inputs none = {.noise = noise};
    tec_launch_prefix(tiny.plan, tec_plan_part(tiny.plan, TEC_PART_FRAME, 0), 0, &in, &none,
                      &replay);
}

static void score(const struct tec_token_tree *tree, float *likely)
{
    struct tec_replay replay = {0};
    const struct tec_row_state row = {.region = 0, .prefix = PROMPT, .token = prompt[PROMPT - 1]};
    const struct tec_score_launch launch = {.tree = tree, .row = &row, .likely = likely};
    tec_launch_score(tiny.plan, tec_plan_part(tiny.plan, TEC_PART_SCORE, 0), &launch, &replay);
    CHECK(replay.status == TEC_OK);
}

/* The sum of each text in the tree and by itself. */
static void check_alone(const struct tec_token_tree *tree, int end)
{
    float *likely = TEC_NEW(&arena, (size_t)tree->n_entries, float);
    double *sums = TEC_NEW(&arena, TEXTS, double), one;
    double *scratch = TEC_NEW(&arena, (size_t)tree->n_nodes, double);
    score(tree, likely);
    tec_token_tree_sum(tree, likely, sums, scratch);
    for (int i = 0; i < TEXTS; i++) {
        struct tec_token_tree alone;
        float few[LONGEST + 1];
        REQUIRE(tec_token_tree_create(&alone, &texts[i], 1, behind(end), &arena, &err) == TEC_OK);
        CHECK_INT(alone.n_chains, ==, 1);
        score(&alone, few);
        tec_token_tree_sum(&alone, few, &one, scratch);
        CHECK(memcmp(&one, &sums[i], sizeof one) == 0);
        CHECK(isfinite(one) && one < 0.0);
    }
}

TEST(a_text_among_others_is_the_text_alone)
{
    for (int how = 0; how < 4; how++) {
        struct tec_token_tree tree;
        int end = how % 2 ? 2 : -1;
        tec_arena_init(&arena, &tiny_heap);
        make_texts(3, 900);
        REQUIRE(tec_token_tree_create(&tree, texts, TEXTS, behind(end), &arena, &err) == TEC_OK);
        CHECK(tree.n_rows > TEC_SCORE_ROWS); /* logits come in two parts */
        open_scores(how / 2, 1 + how % 3, false, &tree);
        make_prompt(tiny.model->text.vocab);
        read_prompt(NULL, 0);
        check_alone(&tree, end);
        tiny_close(&tiny);
        tec_arena_finish(&arena);
    }
}

/* Read the values of a part's tap. */
static const struct tec_tap *tap_of(const struct tec_plan_part *part, const char *name)
{
    for (int i = 0; i < part->taps.n; i++)
        if (strcmp(part->taps.items[i].name, name) == 0)
            return &part->taps.items[i];
    return NULL;
}

static void row_of(const struct tec_plan_part *part, const char *name, int row, float *out)
{
    const struct tec_tap *t = tap_of(part, name);
    REQUIRE(t != NULL);
    tec_device_download(tiny.device, part->stream, out, t->data + (size_t)row * (size_t)t->ld,
                        (size_t)t->cols * sizeof *out);
}

/* The logits behind a prompt that holds the first n tokens of a text, as a decode's first step
 * makes them. */
static void logits_behind(const struct tec_token_text *text, int n, float *out)
{
    struct tec_row_state row, *list[] = {&row};
    struct tec_replay replay = {0};
    struct tec_plan_part *part = tec_plan_part(tiny.plan, TEC_PART_DECODE, 1);
    int token, made;
    read_prompt(text, n);
    tec_row_start(&row, tiny.plan, 0, PROMPT + n, prompt[PROMPT + n - 1], 0, 1, -1);
    tec_launch_decode(tiny.plan, part, list, 1, 1, &token, &made, &replay);
    row_of(part, "logits", 0, out);
}

static double log_softmax(const float *x, int n, int id)
{
    double top = -HUGE_VAL, sum = 0.0;
    for (int c = 0; c < n; c++) /* not fmax: gcc 12 for aarch64 fails on a loop of it */
        top = (double)x[c] > top ? (double)x[c] : top;
    for (int c = 0; c < n; c++)
        sum += exp((double)x[c] - top);
    return (double)x[id] - top - log(sum);
}

/* Every row's logits are the bytes of prompt and text so far, prefilled together; and what is kept
 * of them is their log-softmax to the rounding of one float32. */
static void check_naive(const struct tec_token_tree *tree)
{
    int vocab = tiny.model->text.vocab;
    const struct tec_plan_part *part = tec_plan_part(tiny.plan, TEC_PART_SCORE, 0);
    float *likely = TEC_NEW(&arena, (size_t)tree->n_entries, float);
    float *all = TEC_NEW(&arena, (size_t)tree->n_rows * (size_t)vocab, float);
    float *want = TEC_NEW(&arena, (size_t)vocab, float);
    read_prompt(NULL, 0);
    score(tree, likely);
    for (int r = 0; r < tree->n_rows; r++) {
        char name[32];
        snprintf(name, sizeof name, "score.logits%d", r / TEC_SCORE_ROWS);
        row_of(part, name, r % TEC_SCORE_ROWS, all + (size_t)r * (size_t)vocab);
    }
    for (int i = 0; i < TEXTS; i += 3) {
        int at = 0;
        for (int k = 0; k < texts[i].n; k++) {
            int e = tree->first[at];
            while (tree->id[e] != texts[i].ids[k])
                e++;
            logits_behind(&texts[i], k, want);
            CHECK(memcmp(want, all + (size_t)at * (size_t)vocab, (size_t)vocab * 4) == 0);
            for (int c = 0; tiny.weights->bf16 && tiny.model->text.round && c < vocab; c++)
                want[c] = tec_bf16_round(want[c]);
            double exact = log_softmax(want, vocab, texts[i].ids[k]);
            CHECK(fabs((double)likely[e] - exact) <= fabs(exact) * ldexp(1, -23) + ldexp(4, -24));
            at = tree->next[e];
        }
    }
}

TEST(a_text_is_prompt_and_text_prefilled)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct tec_token_tree tree;
        tec_arena_init(&arena, &tiny_heap);
        make_texts(4, 900);
        REQUIRE(tec_token_tree_create(&tree, texts, TEXTS, behind(-1), &arena, &err) == TEC_OK);
        open_scores(bf16, 2, true, &tree);
        make_prompt(tiny.model->text.vocab);
        check_naive(&tree);
        tiny_close(&tiny);
        tec_arena_finish(&arena);
    }
}

/* --- answers from a list -------------------------------------------------------------------- */

/* The first largest entry of a place, computed by hand. */
static int best_of(const struct tec_token_tree *t, int place, const float *logits)
{
    int best = t->first[place];
    for (int e = best + 1; e < t->first[place + 1]; e++)
        if (logits[t->id[e]] > logits[t->id[best]])
            best = e;
    return best;
}

/* What an unconstrained model would say where it may only say what the tree has: each step's logits
 * are those of prompt and answer so far, prefilled. */
static int answer_by_hand(const struct tec_token_tree *t, int *out)
{
    int vocab = tiny.model->text.vocab, n = 0, at = 0;
    bool rounds = tiny.weights->bf16 && tiny.model->text.round;
    float *logits = TEC_NEW(&arena, (size_t)vocab, float);
    while (t->first[at] < t->first[at + 1]) {
        logits_behind(&(struct tec_token_text){out, n}, n, logits);
        for (int c = 0; rounds && c < vocab; c++)
            logits[c] = tec_bf16_round(logits[c]);
        int e = best_of(t, at, logits);
        out[n++] = t->id[e];
        at = t->next[e];
    }
    return n;
}

/* Run two requests in one launch, by k steps at a time: one chooses from a list, one is free. */
static int answer(int root, int k, int *out)
{
    struct tec_row_state rows[2], *list[] = {&rows[0], &rows[1]};
    int tokens[2 * (LONGEST + 2)], made[2], n = 0;
    read_prompt(NULL, 0);
    for (int r = 0; r < 2; r++)
        tec_row_start(&rows[r], tiny.plan, 0, PROMPT, prompt[PROMPT - 1], r, LONGEST + 1, -1);
    rows[0].place = root;
    for (int step = 0; step <= LONGEST && !rows[0].done; step++) {
        struct tec_replay replay = {0};
        tec_launch_decode(tiny.plan, tec_plan_part(tiny.plan, TEC_PART_DECODE, 2), list, 2, k,
                          tokens, made, &replay);
        memcpy(out + n, tokens, (size_t)made[0] * sizeof *out);
        n += made[0];
    }
    CHECK(rows[0].done);
    return n;
}

TEST(an_answer_is_one_of_the_list)
{
    enum { LISTS = 3, EACH = TEXTS / LISTS, END = 2 };
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct tec_token_tree tree[LISTS];
        const struct tec_token_tree *trees[LISTS] = {&tree[0], &tree[1], &tree[2]};
        int root[LISTS], places = 0, ends = 0;
        tec_arena_init(&arena, &tiny_heap);
        make_texts(6 + (uint64_t)bf16, 900);
        for (int i = 0; i < LISTS; i++) {
            REQUIRE(tec_token_tree_create(&tree[i], texts + (ptrdiff_t)i * EACH, EACH,
                                          (struct tec_tree_end){END, false}, &arena,
                                          &err) == TEC_OK);
            places += tree[i].n_nodes;
        }
        n_nodes = places;
        open_scores(bf16, 2, true, &tree[0]);
        n_nodes = 0;
        REQUIRE(tec_planner_choose(tiny.plan, trees, LISTS, root, &arena, &err) == TEC_OK);
        make_prompt(tiny.model->text.vocab);
        for (int i = 0; i < LISTS; i++) {
            int want[LONGEST + 2] = {0}, got[2 * LONGEST + 2], one[2 * LONGEST + 2];
            int n = answer_by_hand(&tree[i], want), listed = 0;
            REQUIRE(n > 0 && n <= LONGEST + 2);
            CHECK_INT(answer(root[i], LONGEST + 1, got), ==, n);
            CHECK(memcmp(got, want, (size_t)n * sizeof *got) == 0);
            CHECK_INT(answer(root[i], 1, one), ==, n);
            CHECK(memcmp(one, want, (size_t)n * sizeof *one) == 0);
            ends += want[n - 1] == END;
            n -= want[n - 1] == END;
            for (int k = 0; k < EACH; k++)
                listed += texts[i * EACH + k].n == n &&
                          memcmp(texts[i * EACH + k].ids, got, (size_t)n * sizeof *got) == 0;
            CHECK(listed > 0);
        }
        CHECK(ends < LISTS); /* not every answer is the beginning of another */
        tiny_close(&tiny);
        tec_arena_finish(&arena);
    }
}

TAP_MAIN
