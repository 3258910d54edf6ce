/* publish.c - a message to the clients that have subscribed to its channel. */
#include "tools/foxglove/foxglove_own.h"

#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

bool tec_foxglove_wants(const struct tec_foxglove *f, int channel)
{
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS; i++)
        if (f->clients[i].wsi && f->clients[i].subscribed[channel])
            return true;
    return false;
}

void tec_foxglove_publish(struct tec_foxglove *f, int channel, int64_t t_ns, json_t *message)
{
    char *text = tec_json_whole(message, JSON_COMPACT | JSON_REAL_PRECISION(12));
    size_t n = text ? strlen(text) : 0;
    for (int i = 0; i < TEC_FOXGLOVE_CLIENTS && text; i++)
        tec_foxglove_client_tell(&f->clients[i], channel, t_ns + f->wall_ns, text, n);
    free(text);
    json_decref(message);
}

void tec_foxglove_log(struct tec_foxglove *f, int64_t t_ns, bool warns, const char *name,
                      const char *text)
{
    enum { INFO = 2, WARNING = 3, SECOND_NS = 1000000000 }; /* levels of foxglove.Log */
    int64_t wall = t_ns + f->wall_ns;
    tec_foxglove_publish(f, TEC_FOXGLOVE_LOG, t_ns,
                         json_pack("{s:{s:I, s:I}, s:i, s:o, s:o, s:s, s:i}", "timestamp", "sec",
                                   (json_int_t)(wall / SECOND_NS), "nsec",
                                   (json_int_t)(wall % SECOND_NS), "level", warns ? WARNING : INFO,
                                   "message", tec_json_shown(text), "name", tec_json_shown(name),
                                   "file", "", "line", 0));
}
