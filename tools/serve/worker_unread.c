/* worker_unread.c - which keys of requests something reads; those of a connection that nothing does
 * are told. */
#include "base/nearest.h"
#include "tools/serve/worker_own.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { NAMES = 4 * TEC_MAX_INPUTS };

struct names {
    const char *at[NAMES];
    int n;
};

static void add(struct names *names, const char *name)
{
    if (name && names->n < NAMES)
        names->at[names->n++] = name;
}

/* Names that a value is read under. */
static void list_read(const struct tec_worker *w, struct names *names)
{
    const struct tec_pipeline *p = w->opened.pipeline;
    for (int i = 0; i < p->n_inputs; i++)
        add(names, p->inputs[i].name);
    add(names, w->prompt);
    for (const struct tec_session *s = w->opened.engine->session; s; s = tec_session_next(s)) {
        const struct tec_robot *robot = tec_session_robot(s);
        for (int i = 0; robot && i < robot->n_cameras; i++)
            add(names, robot->cameras[i].input);
        for (int i = 0; robot && i < robot->n_parts; i++)
            add(names, robot->parts[i].input);
        add(names, robot ? robot->prompt_input : NULL);
    }
}

static bool of_robot(const struct tec_robot *robot, const char *name)
{
    for (int i = 0; robot && i < robot->n_cameras; i++)
        if (robot->cameras[i].input && strcmp(robot->cameras[i].input, name) == 0)
            return true;
    for (int i = 0; robot && i < robot->n_ignored; i++)
        if (strcmp(robot->ignored[i], name) == 0)
            return true;
    return false;
}

bool tec_worker_knows(const struct tec_worker *w, const char *name)
{
    const struct tec_pipeline *p = w->opened.pipeline;
    for (int i = 0; i < p->n_inputs; i++)
        if (strcmp(p->inputs[i].name, name) == 0)
            return true;
    for (const struct tec_session *s = w->opened.engine->session; s; s = tec_session_next(s))
        if (of_robot(tec_session_robot(s), name))
            return true;
    return false;
}

static bool is_read(const struct tec_worker *w, const char *name, const struct names *names)
{
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, "#ids") == 0)
        length -= 4;
    for (int i = 0; i < names->n; i++)
        if (strncmp(names->at[i], name, length) == 0 && names->at[i][length] == '\0')
            return true;
    return tec_worker_knows(w, name); /* or is ignored */
}

/* What was told to a connection; a new one takes the place of the oldest. NULL: of one that is
 * older than all, nothing is known any more. */
static struct tec_unread_client *find(struct tec_worker_unread *u, int64_t client)
{
    struct tec_unread_client *oldest = &u->clients[0];
    for (int i = 0; i < TEC_UNREAD_CLIENTS; i++) {
        if (u->clients[i].client == client)
            return &u->clients[i];
        if (u->clients[i].client < oldest->client)
            oldest = &u->clients[i];
    }
    if (oldest->client > client)
        return NULL;
    *oldest = (struct tec_unread_client){.client = client};
    return oldest;
}

/* Whether the key has been told; it is from now on. */
static bool told(struct tec_unread_client *c, const char *key)
{
    uint64_t hash = XXH3_64bits(key, strlen(key));
    for (int i = 0; i < c->n; i++)
        if (c->keys[i] == hash)
            return true;
    if (c->n == TEC_UNREAD_KEYS)
        return true;
    c->keys[c->n++] = hash;
    return false;
}

static uint64_t hash_of(const struct tec_request_message *m)
{
    uint64_t hash = m->n;
    for (size_t i = 0; i < m->n; i++)
        hash = XXH3_64bits_withSeed(m->values[i].name, strlen(m->values[i].name) + 1, hash);
    return hash;
}

void tec_worker_tell_unread(struct tec_worker *w, int64_t client)
{
    const struct tec_request_message *m = &w->request;
    struct tec_unread_client *c = find(&w->unread_keys, client);
    uint64_t all = hash_of(m);
    if (!c || c->all == all) /* what most requests are: those of the one before */
        return;
    c->all = all;
    struct names names = {.n = 0};
    char text[200 * TEC_UNREAD_KEYS] = "";
    size_t at = 0;
    list_read(w, &names);
    for (size_t i = 0; i < m->n; i++) {
        const char *key = m->values[i].name;
        if (is_read(w, key, &names) || told(c, key))
            continue;
        const char *near = tec_nearest(key, names.at, names.n);
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s'%.80s'%s%.80s%s", at ? ", " : "", key,
                             near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (at)
        tec_say(w->opened.call, "connection %lld sends what nothing reads: %s", (long long)client,
                text);
}
