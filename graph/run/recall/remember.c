/* remember.c - segments computed by themselves, to be kept: one packed forward, a sequence each. */
#include "graph/run/launch/launch_rows.h"
#include "graph/run/recall/recall.h"

#include <stddef.h>

static enum tec_status check(const struct tec_plan *plan, const struct tec_remember_text *texts,
                             int n_texts, struct tec_error *err)
{
    int64_t tokens = 0;
    for (int i = 0; i < n_texts; i++) {
        tokens += texts[i].n;
        if (texts[i].n < 1 || tokens > plan->spec.segment_tokens)
            return tec_fail(err, TEC_INVALID,
                            "segments of %lld tokens computed together; there is room for %d",
                            (long long)tokens, plan->spec.segment_tokens);
        for (int t = 0; t < texts[i].n; t++)
            if (texts[i].ids[t] < 0 || texts[i].ids[t] >= plan->model->text.vocab)
                return tec_fail(err, TEC_INVALID,
                                "token %d of a segment is %d; the vocabulary has %d", t,
                                texts[i].ids[t], plan->model->text.vocab);
    }
    return TEC_OK;
}

enum tec_status tec_remember_run(struct tec_plan *plan, const struct tec_remember_text *texts,
                                 int n_texts, struct tec_error *err)
{
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_REMEMBER, 0);
    if (!part)
        return tec_fail(err, TEC_INVALID, "the plan has no memory");
    TEC_TRY(check(plan, texts, n_texts, err));
    struct tec_remember_table *table = &part->remember;
    bool all = plan->model->text.mask == TEC_MASK_BIDIR;
    int at = 0;
    for (int i = 0; i < n_texts; i++) {
        table->rows.spans[i] = (struct tec_span){plan->segment_slot + at, texts[i].n};
        for (int t = 0; t < texts[i].n; t++, at++) {
            table->ids[at] = texts[i].ids[t];
            table->rows.pos[at] = t;
            table->rows.slot[at] = plan->segment_slot + at;
            table->rows.seq[at] = i;
            table->rows.visible[at] = all ? texts[i].n : t + 1;
        }
    }
    *table->rows.count = at;
    struct tec_replay run = {0};
    tec_launch_upload(plan, part, &part->block);
    tec_device_replay(plan->device, part->capture, &run);
    return tec_device_failure(plan->device, err);
}

void tec_remember_read(struct tec_plan *plan, int first, int tokens, int layer, void *k, void *v)
{
    const struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_REMEMBER, 0);
    size_t row = tec_kv_row_bytes(&plan->kept.shape);
    const unsigned char *keys = plan->kept.k[layer], *values = plan->kept.v[layer];
    tec_device_download(plan->device, part->stream, k, keys + (size_t)first * row,
                        (size_t)tokens * row);
    tec_device_download(plan->device, part->stream, v, values + (size_t)first * row,
                        (size_t)tokens * row);
}
