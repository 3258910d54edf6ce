/* messages.c - a robot's actions, texts and counters as messages. */
#include "tools/foxglove/foxglove_own.h"

#include "base/json_text.h"

#include <string.h>

enum { COUNT_NS = 1000000000 };

/* --- actions ---------------------------------------------------------------------------------- */

static json_t *row_of(const struct tec_foxglove_chunk *c, int row)
{
    json_t *all = json_array();
    for (int i = row * c->columns; i < (row + 1) * c->columns; i++)
        json_array_append_new(
            all, tec_json_number(c->is_robot ? c->values.robot[i] : (double)c->values.model[i]));
    return all;
}

static void tell_chunk(struct tec_foxglove *f, const struct tec_foxglove_chunk *c)
{
    json_t *rows = json_array();
    for (int i = 0; i < c->rows; i++)
        json_array_append_new(rows, json_pack("{s:o}", "values", row_of(c, i)));
    json_t *one =
        json_pack("{s:I, s:i, s:b, s:s, s:o}", "frame", (json_int_t)c->frame, "session", c->session,
                  "late", (int)c->late, "units", c->is_robot ? "robot" : "model", "rows", rows);
    if (c->rows > 0)
        json_object_set_new(one, "first", row_of(c, 0));
    if (c->age_us >= 0)
        json_object_set_new(one, "age_ms", json_real((double)c->age_us / 1e3));
    tec_foxglove_publish(f, TEC_FOXGLOVE_ACTIONS + c->action, c->release_ns, one);
}

static void tell_chunks(struct tec_foxglove *f)
{
    const struct tec_foxglove_chunk *c;
    while ((c = tec_foxglove_values_take(&f->values)) != NULL)
        if (tec_foxglove_wants(f, TEC_FOXGLOVE_ACTIONS + c->action))
            tell_chunk(f, c);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* The place of a text: its own, a free one, or that of the one that was heard of longest ago. */
static struct tec_foxglove_text *place_of(struct tec_foxglove *f,
                                          const struct tec_transcript_event *e)
{
    struct tec_foxglove_text *oldest = &f->texts[0];
    for (int i = 0; i < TEC_FOXGLOVE_TEXTS_KEPT; i++) {
        struct tec_foxglove_text *t = &f->texts[i];
        if (t->used && t->request == e->request && t->decoder == e->decoder &&
            t->session == e->session)
            return t;
        if (oldest->used && (!t->used || t->frame < oldest->frame))
            oldest = t;
    }
    *oldest = (struct tec_foxglove_text){
        .used = true, .request = e->request, .decoder = e->decoder, .session = e->session};
    return oldest;
}

static void tell_text(struct tec_foxglove *f, const struct tec_transcript_event *e,
                      const char *text, int64_t now_ns)
{
    struct tec_foxglove_text *t = place_of(f, e);
    size_t n = strlen(text), free_n = sizeof t->said - 1 - t->n;
    memcpy(t->said + t->n, text, n < free_n ? n : free_n);
    t->n += n < free_n ? n : free_n;
    t->frame = e->observation;
    t->used = !e->ends;
    bool news = n > 0 || e->ends || e->lost; /* the token that ends a text has no characters */
    if (news && tec_foxglove_wants(f, TEC_FOXGLOVE_TEXTS + e->decoder)) {
        json_t *one = json_pack(
            "{s:I, s:i, s:I, s:o, s:o, s:b, s:b}", "request", (json_int_t)e->request, "session",
            e->session, "frame", (json_int_t)e->observation, "text", tec_json_shown(text), "said",
            tec_json_shown(t->said), "done", (int)e->ends, "lost", (int)e->lost);
        if (e->ends)
            json_object_set_new(one, "reason", tec_json_shown(e->reason));
        tec_foxglove_publish(f, TEC_FOXGLOVE_TEXTS + e->decoder, now_ns, one);
    }
    const struct tec_loop_options *o = tec_loop_settings(f->engine->loop);
    if (e->ends && t->said[0] && tec_foxglove_wants(f, TEC_FOXGLOVE_LOG))
        tec_foxglove_log(f, now_ns, false, o->decoders[e->decoder].name, t->said);
}

/* --- counters --------------------------------------------------------------------------------- */

static json_t *of(const _Atomic int64_t *number)
{
    return json_integer(atomic_load_explicit(number, memory_order_relaxed));
}

static int64_t kv_bytes(const struct tec_engine *e)
{
    int64_t sum = 0;
    for (int i = 0; i < e->n_chains; i++)
        sum += e->chains[i].joins ? 0 : e->chains[i].plan->bytes.kv;
    return sum;
}

static void tell_counters(struct tec_foxglove *f, int64_t now_ns)
{
    const struct tec_figures *g = f->o.figures;
    const struct {
        const char *name;
        const _Atomic int64_t *number;
    } all[] = {{"frames", &g->frames},
               {"tokens", &g->tokens},
               {"snapped", &g->snapped},
               {"chunks", &g->released},
               {"chunks_late", &g->late},
               {"actions_left_out", &g->left_out},
               {"texts_arrived", &g->arrived},
               {"texts_admitted", &g->admitted},
               {"texts_refused", &g->refused},
               {"texts_shed", &g->shed},
               {"texts_finished", &g->finished},
               {"in_flight", &g->in_flight},
               {"texts_cancelled", &g->cancelled},
               {"batch", &g->batch}};
    json_t *one = json_object(), *missed = json_object();
    int64_t sum = 0;
    for (int i = 1; i < TEC_CAUSES; i++) {
        json_t *n = of(&g->missed[i]);
        sum += json_integer_value(n);
        json_object_set_new(missed, tec_cause_name((enum tec_cause)i), n);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        json_object_set_new(one, all[i].name, of(all[i].number));
    json_object_set_new(one, "frames_missed", json_integer(sum));
    json_object_set_new(one, "missed", missed);
    json_object_set_new(one, "slots", json_integer(f->engine->topology.slots));
    json_object_set_new(one, "kv_bytes", json_integer(kv_bytes(f->engine)));
    tec_foxglove_publish(f, TEC_FOXGLOVE_COUNTERS, now_ns, one);
    f->counted_ns = now_ns;
}

/* --- all -------------------------------------------------------------------------------------- */

void tec_foxglove_forget(struct tec_foxglove *f)
{
    struct tec_transcript_event e;
    char text[TEC_DETOKENIZER_BYTES + 1];
    while (tec_foxglove_values_take(&f->values))
        continue;
    while (tec_foxglove_values_read(&f->values, &e, text))
        continue;
    memset(f->texts, 0, sizeof f->texts);
    f->events = atomic_load_explicit(&f->o.recorder->written, memory_order_acquire);
    f->frames_ns = tec_clock_now(&f->clock);
    f->counted_ns = 0;
}

void tec_foxglove_tell(struct tec_foxglove *f, int64_t now_ns)
{
    struct tec_transcript_event e;
    char text[TEC_DETOKENIZER_BYTES + 1];
    tell_chunks(f);
    while (tec_foxglove_values_read(&f->values, &e, text))
        tell_text(f, &e, text, now_ns);
    tec_foxglove_tell_flight(f, now_ns);
    if (now_ns - f->counted_ns > COUNT_NS && tec_foxglove_wants(f, TEC_FOXGLOVE_COUNTERS))
        tell_counters(f, now_ns);
}
