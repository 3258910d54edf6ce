/* view_texts.c - what the page of frames shows of requests and of keys and values: by frame from
 * the flight recorder, and what was said from the texts of a recording. */
#include "tools/record/view_texts.h"

#include "base/json_text.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 2000, MOST_KV = 32 };

static bool of_request(const struct tec_flight_event *e)
{
    static const bool kinds[TEC_EVENTS] = {
        [TEC_EVENT_ARRIVE] = true, [TEC_EVENT_ADMIT] = true,  [TEC_EVENT_REFUSE] = true,
        [TEC_EVENT_TOKENS] = true, [TEC_EVENT_FINISH] = true, [TEC_EVENT_CANCEL] = true,
        [TEC_EVENT_SHED] = true};
    bool had_ended = e->kind == TEC_EVENT_CANCEL && !e->flag;
    return e->kind < TEC_EVENTS && kinds[e->kind] && !had_ended;
}

json_t *tec_view_requests(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (!of_request(e) || e->session != frame->session || e->value < 0)
            continue;
        bool counts = e->kind == TEC_EVENT_TOKENS || e->kind == TEC_EVENT_FINISH;
        json_array_append_new(all, json_pack("[s, I, i, i, s]", tec_recorder_kind(e->kind),
                                             (json_int_t)e->value, (int)e->node,
                                             counts ? (int)e->more : 0, f->words[e->what]));
    }
    return all;
}

json_t *tec_view_kv(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    struct {
        uint8_t of, what; /* words */
        int times;
        int64_t tokens;
    } list[MOST_KV];
    int n = 0;
    json_t *all = json_array();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        int at = 0;
        while (at < n && (list[at].of != e->count || list[at].what != e->what))
            at++;
        if (e->kind != TEC_EVENT_KV || e->session != frame->session || at == MOST_KV)
            continue;
        if (at == n) {
            list[n].of = e->count;
            list[n].what = e->what;
            list[n].times = 0;
            list[n++].tokens = 0;
        }
        list[at].times++;
        list[at].tokens += e->more;
    }
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_pack("[s, s, i, I]", f->words[list[i].of],
                                             f->words[list[i].what], list[i].times,
                                             (json_int_t)list[i].tokens));
    return all;
}

/* Behind what was said before. A text that is too long is cut between two characters, and nothing
 * is put behind its " ...", which makes it longer than there is room for. */
static void say(json_t *one, const char *more)
{
    static const char cut[] = " ...";
    const char *before = json_string_value(json_object_get(one, "text"));
    size_t n = before ? strlen(before) : 0, add = strlen(more);
    char text[MOST_TEXT + sizeof cut];
    if (n > MOST_TEXT)
        return;
    bool fits = add <= MOST_TEXT - n;
    for (add = fits ? add : MOST_TEXT - n; add > 0 && ((unsigned char)more[add] & 0xc0U) == 0x80U;)
        add--;
    snprintf(text, sizeof text, "%s%.*s%s", before ? before : "", (int)add, more, fits ? "" : cut);
    json_object_set_new(one, "text", tec_json_shown(text));
}

static void take(json_t *texts, const json_t *m)
{
    char key[48];
    const json_t *request = json_object_get(m, "request"), *session = json_object_get(m, "session");
    const char *text = json_string_value(json_object_get(m, "text"));
    const char *reason = json_string_value(json_object_get(m, "reason"));
    if (!json_is_integer(request))
        return;
    snprintf(key, sizeof key, "%lld:%lld", (long long)json_integer_value(session),
             (long long)json_integer_value(request));
    json_t *one = json_object_get(texts, key);
    if (!one) {
        one = json_pack("{s:s}", "text", "");
        json_object_set_new(texts, key, one);
    }
    if (text && one)
        say(one, text);
    if (reason && one)
        json_object_set_new(one, "reason", tec_json_shown(reason));
}

json_t *tec_view_texts(struct tec_flight *f)
{
    static const char topic[] = "/tectum/text/";
    struct tec_mcap_message m;
    json_t *texts = json_object();
    tec_mcap_rewind(&f->file);
    while (tec_mcap_next(&f->file, &m)) {
        struct tec_mcap_name name = m.topic;
        while (name.n >= sizeof topic - 1 && memcmp(name.text, topic, sizeof topic - 1) != 0)
            name.text++, name.n--; /* of a session: "/session1" stands before it */
        if (name.n < sizeof topic - 1)
            continue;
        json_t *json = json_loadb((const char *)m.data, m.n, 0, NULL);
        take(texts, json);
        json_decref(json);
    }
    return texts;
}
