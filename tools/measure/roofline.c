/* roofline.c - predicts times from what calls compute and move, on machines of peaks.def; nothing
 * is measured here.
 *
 * The time of a call is the larger of FLOP / peak and bytes / bandwidth; a boundary is added for
 * each kernel. */
#include "tools/measure/roofline.h"

#include "base/nearest.h"
#include "tools/measure/modelled.h"
#include "tools/measure/roofline_file.h"

#include <string.h>

const char *const tec_bound_names[TEC_BOUNDS] = {"products", "one_term", "two_term"};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* TFLOP/s are 1e6 FLOP a microsecond; GB/s are 1e3 bytes a microsecond. */
double tec_roofline_us(const struct tec_peak *peak, const struct tec_cost *c, enum tec_bound bound)
{
    double bytes = (double)c->products_bytes, terms = (double)c->products - bytes;
    double per_byte = tec_chip_byte_rate(peak, tec_chip_of(peak)) * 1e6;
    double products = terms / (peak->bf16 * 1e6) + bytes / per_byte;
    if (bound == TEC_BOUND_PRODUCTS) {
        int64_t all = tec_cost_plus(c->products, c->products_f32);
        double moved = (double)tec_cost_plus(c->weights, c->kv_read) / (peak->memory * 1e3);
        double f32 = (double)c->products_f32 / (peak->bf16 * 1e6);
        return all > 0 ? larger(products + f32, moved) : 0.0;
    }
    double plain = (double)tec_cost_plus(c->products_f32, c->other) / (peak->f32 * 1e6);
    double moved = (double)tec_cost_bytes(c) / (peak->memory * 1e3);
    return larger(larger(bound == TEC_BOUND_TWO_TERM ? 2 * products : products, plain), moved);
}

double tec_roofline_bounded_us(const struct tec_peak *peak, double us, int64_t kernels)
{
    return us + (double)kernels * peak->boundary;
}

static const struct tec_peak *find_peak(const char *name, size_t length)
{
    for (int i = 0; i < tec_n_peaks; i++)
        if (strlen(tec_peaks[i].name) == length && memcmp(tec_peaks[i].name, name, length) == 0)
            return &tec_peaks[i];
    return NULL;
}

static enum tec_status refuse(const char *name, int length, struct tec_error *err)
{
    enum { MOST = 32 };
    char list[400] = "", word[41];
    const char *names[MOST];
    int n = 0;
    snprintf(word, sizeof word, "%.*s", length, name);
    for (; n < tec_n_peaks && n < MOST; n++) {
        names[n] = tec_peaks[n].name;
        strncat(list, n ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, names[n], sizeof list - strlen(list) - 1);
    }
    const char *near = tec_nearest(word, names, n);
    return tec_fail(err, TEC_INVALID,
                    "--roofline: no machine '%s'; %s%s%sthere are: %s, and files that end with "
                    ".json",
                    word, near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", list);
}

/* The machine of `length` bytes of a list. */
static enum tec_status find_one(const struct tec_peak **out, const char *name, size_t length,
                                struct tec_arena *arena, struct tec_heap *heap,
                                struct tec_error *err)
{
    static const char ending[] = ".json";
    size_t n = sizeof ending - 1;
    *out = find_peak(name, length);
    if (*out)
        return TEC_OK;
    if (length <= n || memcmp(name + length - n, ending, n) != 0)
        return refuse(name, length < 40 ? (int)length : 40, err);
    const char *path = tec_arena_printf(arena, "%.*s", (int)length, name);
    return path ? tec_roofline_read(out, path, arena, heap, err)
                : tec_fail(err, TEC_NO_MEMORY, "no memory for a machine");
}

enum tec_status tec_roofline_choose(struct tec_roofline *r, const char *names,
                                    struct tec_arena *arena, struct tec_heap *heap,
                                    struct tec_error *err)
{
    r->n_peaks = 0;
    for (const char *at = names; at; at = strchr(at, ',')) {
        const struct tec_peak *peak;
        at += *at == ',' && at != names;
        TEC_TRY(find_one(&peak, at, strcspn(at, ","), arena, heap, err));
        for (int i = 0; i < r->n_peaks; i++)
            if (strcmp(r->peaks[i]->name, peak->name) == 0)
                return tec_fail(err, TEC_INVALID, "--roofline: '%s' is there twice", peak->name);
        if (r->n_peaks == TEC_MAX_PEAKS)
            return tec_fail(err, TEC_INVALID, "--roofline: more than %d machines", TEC_MAX_PEAKS);
        r->peaks[r->n_peaks++] = peak;
    }
    return TEC_OK;
}

static void add_work(struct tec_roofline_sum *sum, const struct tec_call_work *work)
{
    sum->kernels++;
    sum->beside += work->branch;
    tec_cost_add(&sum->cost, &work->cost);
}

static void add_us(const struct tec_roofline *r, struct tec_roofline_sum *sum,
                   const struct tec_cost *cost)
{
    for (int i = 0; i < r->n_peaks; i++)
        for (int b = 0; b < TEC_BOUNDS; b++)
            sum->us[i][b] += tec_roofline_us(r->peaks[i], cost, (enum tec_bound)b);
}

static struct tec_roofline_sum *op_of(struct tec_roofline_row *row, const char *label)
{
    for (int i = 0; i < row->n_ops; i++)
        if (strcmp(row->ops[i].name, label) == 0)
            return &row->ops[i];
    if (row->n_ops == TEC_ROOFLINE_OPS)
        return &row->ops[TEC_ROOFLINE_OPS - 1];
    bool last = row->n_ops == TEC_ROOFLINE_OPS - 1;
    row->ops[row->n_ops].name = last ? "others" : label;
    return &row->ops[row->n_ops++];
}

/* The state while a part is visited: one row for each of its stages, and one for all of it. */
struct visit {
    const struct tec_roofline *roofline;
    struct tec_roofline_row *stages; /* TEC_STAGE_COUNT + 1 rows */
    bool away;                       /* a branch has begun and not ended, in that stage */
    enum tec_stage stage;
    struct tec_roofline_sum ways[2]; /* what is beside the branch, and the branch */
    struct tec_cost products;        /* of both, of calls that have any */
};

/* The branch's end: the longer of both ways, and not less than what all of their work takes. */
static void join(struct visit *v)
{
    const struct tec_roofline *r = v->roofline;
    struct tec_cost all = v->ways[0].cost;
    tec_cost_add(&all, &v->ways[1].cost);
    for (int i = 0; v->away && i < r->n_peaks; i++)
        for (int b = 0; b < TEC_BOUNDS; b++) {
            const struct tec_cost *both = b == TEC_BOUND_PRODUCTS ? &v->products : &all;
            double us = larger(larger(v->ways[0].us[i][b], v->ways[1].us[i][b]),
                               tec_roofline_us(r->peaks[i], both, (enum tec_bound)b));
            v->stages[v->stage].sum.us[i][b] += us;
            v->stages[TEC_STAGE_COUNT].sum.us[i][b] += us;
        }
    v->away = false;
    memset(v->ways, 0, sizeof v->ways);
    memset(&v->products, 0, sizeof v->products);
}

static void take(void *user, const struct tec_call_work *work)
{
    struct visit *v = user;
    struct tec_roofline_row *row = &v->stages[work->stage];
    struct tec_roofline_sum *op = op_of(row, work->call->label);
    if (work->joins)
        join(v);
    add_work(&row->sum, work);
    add_work(op, work);
    add_work(&v->stages[TEC_STAGE_COUNT].sum, work);
    add_us(v->roofline, op, &work->cost);
    if (work->branch && !v->away) {
        v->away = true;
        v->stage = work->stage;
    }
    if (v->away) {
        add_work(&v->ways[work->branch], work);
        if (work->cost.products || work->cost.products_f32)
            tec_cost_add(&v->products, &work->cost);
        add_us(v->roofline, &v->ways[work->branch], &work->cost);
        return;
    }
    add_us(v->roofline, &row->sum, &work->cost);
    add_us(v->roofline, &v->stages[TEC_STAGE_COUNT].sum, &work->cost);
}

struct tec_work_size tec_roofline_size(const struct tec_roofline *r,
                                       const struct tec_plan_part *part)
{
    struct tec_work_size size = r->size;
    bool requests = part->kind == TEC_PART_DECODE || part->kind == TEC_PART_VERIFY;
    size.rows = requests ? part->batch : r->plan->spec.stages - 1;
    size.k = 1;
    if (part->kind == TEC_PART_REMEMBER) {
        int room = r->plan->spec.segment_tokens, most = r->plan->spec.segments;
        int each = size.segments.n > 0 ? size.segments.tokens / size.segments.n : room;
        int n = room / each < most ? room / each : most;
        size.segments = (struct tec_work_segments){.n = n, .tokens = n * each};
    }
    return size;
}

static enum tec_status make_part(struct tec_roofline *r, const struct tec_plan_part *part,
                                 struct tec_error *err)
{
    struct tec_roofline_row *rows = r->rows + r->n_rows;
    struct tec_work_size size = tec_roofline_size(r, part);
    TEC_TRY(tec_work_check(r->plan, part, &size, err));
    for (int i = 0; i <= TEC_STAGE_COUNT; i++)
        rows[i] = (struct tec_roofline_row){
            .part = part, .stage = i < TEC_STAGE_COUNT ? tec_stage_names[i] : NULL};
    struct visit v = {.roofline = r, .stages = rows};
    tec_work_visit(r->plan, part, &size, take, &v);
    join(&v);
    int n = 0;
    for (int i = 0; i <= TEC_STAGE_COUNT; i++) {
        bool whole = i == TEC_STAGE_COUNT;
        if (rows[i].sum.kernels > 0 && !(whole && n < 2)) {
            struct tec_roofline_row *to = &rows[n++];
            if (to != &rows[i])
                *to = rows[i];
        }
    }
    r->n_rows += n;
    return TEC_OK;
}

enum tec_status tec_roofline_make(struct tec_roofline *r, struct tec_arena *arena,
                                  struct tec_error *err)
{
    const struct tec_plan_spec *s = &r->plan->spec;
    size_t room = (size_t)r->plan->n_parts * (TEC_STAGE_COUNT + 1) + 1;
    r->rows = TEC_NEW(arena, room, struct tec_roofline_row);
    if (!r->rows)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a roofline");
    if (!r->size.pictures)
        r->size.pictures = s->pictures;
    int left = s->frame_tokens - r->size.pictures * tec_vision_rows(&r->plan->model->vision);
    if (!r->size.text)
        r->size.text = left < s->text_tokens ? left : s->text_tokens;
    TEC_TRY(tec_roofline_segments(r, arena, err));
    for (int i = 0; i < r->plan->n_parts; i++)
        if (!r->plan->parts[i].beside)
            TEC_TRY(make_part(r, &r->plan->parts[i], err));
    return TEC_OK;
}
