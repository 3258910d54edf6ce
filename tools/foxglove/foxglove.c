/* foxglove.c - who looks at a robot by Foxglove's protocol, and when they are told what is new. */
#include "tools/foxglove/foxglove_own.h"

#include "base/json_text.h"
#include "tools/record/recording_own.h"

#include <libwebsockets.h>
#include <time.h>

/* --- clients ---------------------------------------------------------------------------------- */

/* A subscription counts from here on: before the client gets the answer to what it has sent behind
 * it. */
static void look(struct tec_foxglove *f)
{
    bool looked_at = false, chunks = false, texts = false;
    for (int i = 0; i < TEC_FOXGLOVE_CHANNELS; i++) {
        bool wanted = tec_foxglove_wants(f, i);
        looked_at |= wanted;
        chunks |= wanted && i >= TEC_FOXGLOVE_ACTIONS && i < TEC_FOXGLOVE_TEXTS;
        texts |= wanted && (i >= TEC_FOXGLOVE_TEXTS || i == TEC_FOXGLOVE_LOG);
    }
    if (looked_at && !f->looked_at)
        tec_foxglove_forget(f);
    f->looked_at = looked_at;
    tec_foxglove_values_want(&f->values, chunks, texts);
}

/* A free place; TEC_FOXGLOVE_CLIENTS: there is none. */
static int free_place(const struct tec_foxglove *f)
{
    int at = 0;
    while (at < TEC_FOXGLOVE_CLIENTS && f->clients[at].wsi)
        at++;
    return at;
}

static bool looks(const struct tec_foxglove_client *c)
{
    bool any = false;
    for (int i = 0; i < TEC_FOXGLOVE_CHANNELS; i++)
        any |= c->subscribed[i];
    return any;
}

bool tec_foxglove_full(struct tec_foxglove *f)
{
    struct tec_foxglove_client *idle = NULL;
    int64_t before_ns = tec_clock_now(&f->clock) - TEC_FOXGLOVE_IDLE_S * 1000000000LL;
    if (free_place(f) < TEC_FOXGLOVE_CLIENTS)
        return false;
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++) {
        struct tec_foxglove_client *c = &f->clients[i];
        if (!looks(c) && c->heard_ns < before_ns && (!idle || c->heard_ns < idle->heard_ns))
            idle = c;
    }
    if (idle)
        tec_foxglove_client_end(idle, LWS_CLOSE_STATUS_POLICY_VIOLATION);
    return true;
}

struct tec_foxglove_client *tec_foxglove_enter(struct tec_foxglove *f, struct lws *wsi)
{
    int at = free_place(f);
    if (at == TEC_FOXGLOVE_CLIENTS ||
        !tec_foxglove_client_open(&f->clients[at], wsi, f->engine, f->info, f->heap))
        return NULL;
    f->clients[at].heard_ns = tec_clock_now(&f->clock);
    return &f->clients[at];
}

void tec_foxglove_came(struct tec_foxglove *f, struct tec_foxglove_client *c, const void *data,
                       size_t n)
{
    c->heard_ns = tec_clock_now(&f->clock);
    tec_foxglove_client_receive(c, f->engine, data, n, c->heard_ns);
    look(f);
}

int tec_foxglove_writable(struct tec_foxglove_client *c)
{
    return tec_foxglove_client_send(c);
}

void tec_foxglove_left_by(struct tec_foxglove *f, struct tec_foxglove_client *c)
{
    tec_foxglove_client_close(c, f->heap);
    look(f);
}

bool tec_foxglove_looked_at(const struct tec_foxglove *f)
{
    return f->looked_at;
}

void tec_foxglove_tick(struct tec_foxglove *f)
{
    struct timespec wall;
    int64_t now_ns = tec_clock_now(&f->clock);
    clock_gettime(CLOCK_REALTIME, &wall);
    f->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - now_ns;
    tec_foxglove_tell(f, now_ns);
}

int tec_foxglove_goodbye(struct tec_foxglove *f)
{
    int there = 0;
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++) {
        if (!f->clients[i].wsi)
            continue;
        there++;
        tec_foxglove_client_end(&f->clients[i], LWS_CLOSE_STATUS_GOINGAWAY);
    }
    return there;
}

/* --- the frame thread ------------------------------------------------------------------------- */

void tec_foxglove_left(struct tec_foxglove *f, const struct tec_recorded_chunk *left)
{
    if (f)
        tec_foxglove_values_left(&f->values, left);
}

void tec_foxglove_frame(struct tec_foxglove *f, const struct tec_frame_record *record)
{
    if (f && record->place == 0)
        tec_foxglove_values_told(&f->values);
}

/* --- life ------------------------------------------------------------------------------------- */

static enum tec_status start(struct tec_foxglove *f, struct tec_error *err)
{
    TEC_TRY(tec_foxglove_values_init(&f->values, f->engine, &f->arena, err));
    f->about = tec_recording_about(f->o.opened, f->o.mode, 0);
    f->info = json_pack("{s:s, s:o, s:[], s:{s:s}}", "op", "serverInfo", "name",
                        tec_json_shown(f->o.opened->pipeline->name), "capabilities", "metadata",
                        "program", "tectum");
    return f->about && f->info ? TEC_OK
                               : tec_fail(err, TEC_NO_MEMORY, "no memory for clients of the page");
}

enum tec_status tec_foxglove_open(struct tec_foxglove **out,
                                  const struct tec_foxglove_options *options, struct tec_error *err)
{
    struct tec_heap *heap = options->opened->call->heap;
    struct tec_foxglove *f = tec_heap_get(heap, sizeof *f);
    *out = NULL;
    if (!f)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for clients of the page");
    *f = (struct tec_foxglove){.o = *options, .engine = options->opened->engine, .heap = heap};
    tec_arena_init(&f->arena, heap);
    enum tec_status status = start(f, err);
    if (status == TEC_OK)
        *out = f;
    else
        tec_foxglove_close(f);
    return status;
}

void tec_foxglove_close(struct tec_foxglove *f)
{
    if (!f)
        return;
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++)
        tec_foxglove_client_close(&f->clients[i], f->heap);
    json_decref(f->about);
    json_decref(f->info);
    tec_foxglove_values_finish(&f->values);
    tec_arena_finish(&f->arena);
    tec_heap_put(f->heap, f);
}
