/* grid.c - the cells: KEEP's tables and figures. */
#include "tests/experiments/keep/keeping.h"

#include <math.h>
#include <string.h>

/* The published code's decay of 0.95 a layer over 48 layers. */
static const double usual = 0.38;

static const struct tec_keeping_method full = {.name = "full", .selection = TEC_SELECTION_full};
static const struct tec_keeping_method prefix = {.name = "prefix",
                                                 .selection = TEC_SELECTION_prefix};
static const struct tec_keeping_method bare = {
    .name = "bare", .selection = TEC_SELECTION_keep, .kept = TEC_KEEPING_STORE, .bare = true};

static struct tec_keeping_method reuse(const char *name, int block)
{
    return (struct tec_keeping_method){
        .name = name, .selection = TEC_SELECTION_reuse, .kept = TEC_KEEPING_BLOCKS, .block = block};
}

static struct tec_keeping_method blend(const char *name, int block, double share)
{
    return (struct tec_keeping_method){.name = name,
                                       .selection = TEC_SELECTION_cacheblend,
                                       .kept = TEC_KEEPING_BLOCKS,
                                       .block = block,
                                       .share = share};
}

static struct tec_keeping_method keep(const char *name, enum tec_scoring scoring, double share)
{
    return (struct tec_keeping_method){.name = name,
                                       .selection = TEC_SELECTION_keep,
                                       .kept = TEC_KEEPING_STORE,
                                       .scoring = scoring,
                                       .share = share};
}

static struct tec_keeping_cell *cell(struct tec_keeping *s, const char *experiment, int segments)
{
    struct tec_keeping_cell *c = &s->cells[s->n_cells];
    if (s->only && strcmp(s->only, experiment) != 0)
        return NULL;
    s->n_cells++;
    *c = (struct tec_keeping_cell){.experiment = experiment, .segments = segments, .n_rows = 1};
    c->rows[0].method = full;
    return c;
}

static void add(struct tec_keeping_cell *c, struct tec_keeping_method method)
{
    c->rows[c->n_rows++].method = method;
}

/* Tables 1 to 3: every method at the length of the published trace. */
static void methods(struct tec_keeping *s)
{
    struct tec_keeping_cell *c = cell(s, "methods", TEC_KEEPING_TYPICAL);
    if (!c)
        return;
    struct tec_keeping_method m = reuse("reuse, local places", 0);
    add(c, prefix);
    add(c, reuse("reuse", 0));
    m.local = true;
    add(c, m);
    add(c, reuse("reuse, blocks", TEC_KEEPING_BLOCK));
    add(c, blend("cacheblend", 0, 0.16));
    m = blend("cacheblend, code's mask", 0, 0.16);
    m.code_mask = true;
    add(c, m);
    add(c, blend("cacheblend, blocks", TEC_KEEPING_BLOCK, 0.16));
    add(c, blend("cacheblend, stored blocks", -TEC_KEEPING_BLOCK, 0.16));
    add(c, (struct tec_keeping_method){.name = "epic",
                                       .selection = TEC_SELECTION_epic,
                                       .kept = TEC_KEEPING_BLOCKS,
                                       .first = 4});
    add(c, keep("keep", TEC_SCORING_paper, usual));
    add(c, bare);
    add(c, keep("keep, code", TEC_SCORING_code, usual));
    add(c, keep("keep, no hops", TEC_SCORING_query_only, usual));
    add(c, keep("keep, lift", TEC_SCORING_lift, usual));
    add(c, bare);
    m = keep("keep, no groups", TEC_SCORING_paper, usual);
    m.kept = TEC_KEEPING_BLOCKS;
    add(c, m);
    m.name = "keep, blocks";
    m.block = TEC_KEEPING_BLOCK;
    add(c, m);
}

/* Figures 1 and 9. */
static void segments(struct tec_keeping *s)
{
    static const int numbers[] = {5, 10, 20, 30, 40};
    for (int i = s->quick ? 1 : 0; i < (s->quick ? 2 : 5); i++) {
        struct tec_keeping_cell *c = cell(s, "segments", numbers[i]);
        if (!c)
            return;
        add(c, prefix);
        add(c, reuse("reuse", 0));
        add(c, blend("cacheblend, blocks", TEC_KEEPING_BLOCK, 0.16));
        add(c, keep("keep", TEC_SCORING_paper, usual));
        add(c, bare);
    }
}

/* Figure 10, with CacheBlend's share beside it. */
static void ratio(struct tec_keeping *s)
{
    static const double shares[] = {0.2, 0.3, 0.38, 0.5, 0.75, 1.0};
    static const char *const paper[] = {"keep 0.20", "keep 0.30", "keep 0.38",
                                        "keep 0.50", "keep 0.75", "keep 1.00"};
    static const char *const lift[] = {"lift 0.20", "lift 0.30", "lift 0.38",
                                       "lift 0.50", "lift 0.75", "lift 1.00"};
    static const double of[] = {0.05, 0.16, 0.3, 0.5, 0.75};
    static const char *const names[] = {"cacheblend 0.05", "cacheblend 0.16", "cacheblend 0.30",
                                        "cacheblend 0.50", "cacheblend 0.75"};
    struct tec_keeping_cell *c = cell(s, "ratio", TEC_KEEPING_TYPICAL);
    for (int i = 0; c && i < 6; i += s->quick ? 3 : 1) {
        add(c, keep(paper[i], TEC_SCORING_paper, shares[i]));
        add(c, keep(lift[i], TEC_SCORING_lift, shares[i]));
    }
    for (int i = s->quick; c && i < (s->quick ? 2 : 5); i++)
        add(c, blend(names[i], 0, of[i]));
}

/* Figure 3. */
static void blocks(struct tec_keeping *s)
{
    static const int sizes[] = {0, 32, 64, 128, 256};
    static const char *const names[] = {"segment", "32", "64", "128", "256"};
    struct tec_keeping_cell *c = cell(s, "blocks", TEC_KEEPING_TYPICAL);
    for (int i = 0; c && i < 5; i += s->quick ? 3 : 1)
        add(c, blend(names[i], sizes[i], 0.16));
}

/* Figures 7 and 8, the last line of table 3: kept pieces behind a link. */
static void links(struct tec_keeping *s)
{
    static const struct tec_keeping_link of[] = {{"RAM", TEC_KEPT_RAM, 0},
                                                 {"file, 5 GB/s", TEC_KEPT_FILE, 5000000000},
                                                 {"file, 0.5 GB/s", TEC_KEPT_FILE, 500000000},
                                                 {"server", TEC_KEPT_REMOTE, 0}};
    for (int i = 0; i < 4; i++) {
        if (of[i].tier == TEC_KEPT_REMOTE ? !s->remote : s->quick && i < 2)
            continue;
        struct tec_keeping_cell *c = cell(s, "links", TEC_KEEPING_TYPICAL);
        if (!c)
            return;
        c->link = of[i];
        for (int o = 0; o < TEC_OVERLAPS; o++) {
            struct tec_keeping_method m =
                keep(tec_overlap_name((enum tec_overlap)o), TEC_SCORING_paper, usual);
            m.kept = TEC_KEEPING_FEED;
            m.overlap = (enum tec_overlap)o;
            add(c, m);
        }
        add(c, bare);
    }
}

/* Accuracy over the ratio: every scoring; the baselines. */
static void questions(struct tec_keeping *s)
{
    static const double shares[] = {0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0};
    static const char *const names[] = {"0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1.0"};
    static const char *const blends[] = {"cacheblend 0.2", "cacheblend 0.3", "cacheblend 0.4",
                                         "cacheblend 0.5", "cacheblend 0.6", "cacheblend 0.8",
                                         "cacheblend 1.0"};
    static const char *const epics[] = {"epic 1", "epic 2", "epic 4"};
    for (int k = 0; k < TEC_SCORINGS; k++) {
        enum tec_scoring scoring = (enum tec_scoring)k;
        struct tec_keeping_cell *c = cell(s, tec_scoring_name(scoring), 0);
        for (int i = 0; c && i < 7; i++) {
            struct tec_keeping_method m = keep(names[i], scoring, shares[i]);
            m.kept = TEC_KEEPING_BLOCKS;
            add(c, m);
        }
    }
    struct tec_keeping_cell *c = cell(s, "baselines", 0);
    struct tec_keeping_method m = reuse("reuse, local places", 0);
    m.local = true;
    for (int i = 0; c && i < 7; i++)
        add(c, blend(blends[i], 0, shares[i]));
    for (int i = 0; c && i < 3; i++)
        add(c, (struct tec_keeping_method){.name = epics[i],
                                           .selection = TEC_SELECTION_epic,
                                           .kept = TEC_KEEPING_BLOCKS,
                                           .first = 1 << i});
    if (!c)
        return;
    add(c, reuse("reuse", 0));
    add(c, m);
    m = blend("cacheblend 0.4, code's mask", 0, 0.4);
    m.code_mask = true;
    add(c, m);
}

void tec_keeping_grid(struct tec_keeping *s)
{
    s->n_cells = 0;
    if (s->weights) {
        questions(s);
        return;
    }
    methods(s);
    segments(s);
    ratio(s);
    blocks(s);
    links(s);
}

void tec_keeping_curve(double mean, int layers, double *ratios)
{
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 60; i++) {
        double decay = (low + high) / 2.0, sum = 0.0, x = 1.0;
        for (int l = 0; l < layers; l++, x *= decay)
            sum += x;
        *(sum / layers < mean ? &low : &high) = decay;
    }
    double x = 1.0;
    for (int l = 0; l < layers; l++, x *= low)
        ratios[l] = mean >= 1.0 ? 1.0 : mean <= 0.0 ? 0.0 : x;
}

const struct tec_keeping_row *tec_keeping_find(const struct tec_keeping_cell *c, const char *name)
{
    for (int i = 0; i < c->n_rows; i++)
        if (strcmp(c->rows[i].method.name, name) == 0)
            return &c->rows[i];
    return NULL;
}

const struct tec_keeping_cell *tec_keeping_cell_of(const struct tec_keeping *s,
                                                   const char *experiment, int segments)
{
    for (int i = 0; i < s->n_cells; i++)
        if (s->cells[i].ran && strcmp(s->cells[i].experiment, experiment) == 0 &&
            (!segments || s->cells[i].segments == segments))
            return &s->cells[i];
    return NULL;
}
