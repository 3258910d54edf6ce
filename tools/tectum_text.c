/* tectum_text.c - the public interface: what requests say, piece by piece. */
#include "base/clock.h"
#include "tools/live.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct tectum_piece *)NULL)->text > TEC_DETOKENIZER_BYTES, "a token fits");

static const struct tec_clock wall = {NULL};

static struct tec_live_text *text_of(struct tectum *t, int64_t request, int decoder)
{
    const struct tec_tokenizer *tokenizer = tec_engine_tokenizer(t->engine, decoder);
    struct tec_live_text *oldest = &t->texts[0];
    for (int i = 0; i < t->n_texts; i++) {
        if (t->texts[i].request == request)
            return &t->texts[i];
        if (t->texts[i].request < oldest->request)
            oldest = &t->texts[i];
    }
    oldest->request = request;
    if (tokenizer)
        tec_detokenizer_init(&oldest->decoder, tokenizer, true);
    return oldest;
}

/* The decode node of that index among the pipeline's. */
static const char *node_name(const struct tectum *t, int decoder)
{
    const struct tec_topology *topology = &t->engine->topology;
    for (int i = 0; i < topology->n_nodes; i++)
        if (strcmp(topology->nodes[i].kind, "decode") == 0 && decoder-- == 0)
            return topology->nodes[i].name;
    return "";
}

static void make_piece(struct tectum *t, const struct tec_live_event *e, struct tectum_piece *piece)
{
    struct tec_live_text *text = text_of(t, e->request, e->decoder);
    size_t room = sizeof piece->text - 1, n = 0;
    *piece = (struct tectum_piece){
        .request = e->request, .observation = e->observation, .token = e->token};
    snprintf(piece->node, sizeof piece->node, "%s", node_name(t, e->decoder));
    if (tec_engine_tokenizer(t->engine, e->decoder))
        n = e->reason ? tec_detokenizer_flush(&text->decoder, piece->text, room)
                      : tec_detokenizer_push(&text->decoder, e->token, piece->text, room);
    piece->bytes = n <= room ? n : 0;
    if (!e->reason)
        return;
    piece->truncated = e->lost;
    snprintf(piece->reason, sizeof piece->reason, "%s", e->reason);
    text->request = -1;
}

enum tectum_status tectum_read(struct tectum *t, int64_t timeout_ns, struct tectum_piece *piece,
                               struct tectum_error *err)
{
    struct tec_error lost;
    if (!t || !piece)
        return tec_live_fail(err, TEC_INVALID, "tectum_read: an engine and a piece are needed");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        struct tec_live_event event;
        uint32_t seen = atomic_load(&t->said.rings);
        pthread_mutex_lock(&t->text_lock);
        bool got = tec_ring_pop(&t->events, &event);
        if (got)
            make_piece(t, &event, piece);
        pthread_mutex_unlock(&t->text_lock);
        if (got)
            return TECTUM_OK;
        if (tec_device_failure(t->engine->device, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return tec_live_fail(err, TEC_TIME, "no text yet");
        tec_bell_wait(&t->said, seen, until);
    }
}
