/* push.c - bounded queues of texts that leave as messages of their own. */
#include "tools/serve/push.h"

enum tec_status tec_push_init(struct tec_push *p, struct tec_arena *arena, struct tec_error *err)
{
    *p = (struct tec_push){.messages = TEC_NEW(arena, TEC_PUSHES, struct tec_push_message)};
    return p->messages ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for texts of clients");
}

bool tec_push_put(struct tec_push *p, int64_t client, const struct tec_reply_text *text)
{
    uint32_t at = atomic_load_explicit(&p->written, memory_order_relaxed);
    uint32_t read = atomic_load_explicit(&p->read, memory_order_acquire);
    struct tec_push_message *m = &p->messages[at % TEC_PUSHES];
    if (p->client != client)
        p->lost = 0;
    p->client = client;
    if (at - read < TEC_PUSHES) {
        struct tec_reply_buffer out = {.data = m->bytes + TEC_PUSH_HEAD, .room = TEC_PUSH_ROOM};
        tec_reply_pack_text(&out, text, p->lost);
        if (!out.full) {
            m->client = client;
            m->n = out.n;
            p->lost = 0;
            atomic_store_explicit(&p->written, at + 1, memory_order_release);
            return true;
        }
    }
    p->lost++;
    return false;
}

struct tec_push_message *tec_push_first(struct tec_push *p, int64_t client)
{
    for (;;) {
        uint32_t at = atomic_load_explicit(&p->read, memory_order_relaxed);
        if (at == atomic_load_explicit(&p->written, memory_order_acquire))
            return NULL;
        struct tec_push_message *m = &p->messages[at % TEC_PUSHES];
        if (m->client == client)
            return m;
        tec_push_drop(p);
    }
}

void tec_push_drop(struct tec_push *p)
{
    uint32_t at = atomic_load_explicit(&p->read, memory_order_relaxed);
    atomic_store_explicit(&p->read, at + 1, memory_order_release);
}
