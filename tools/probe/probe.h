/* probe.h - one observation, recorded or drawn, to an openpi server again and again, and where the
 * time went. */
#ifndef TEC_TOOLS_PROBE_PROBE_H
#define TEC_TOOLS_PROBE_PROBE_H

#include "tools/client/secure.h"
#include "tools/record/recorded.h"

/* Medians of the requests, microseconds; -1: the server does not say. */
struct tec_probe_times {
    int n;
    int64_t client, client_p99; /* from the first byte out to the last one in */
    int64_t wire;               /* of it, what the server does not count: network, its queue */
    int64_t decode, prepare, model, finish;
    int rows, columns; /* of the actions; 0: there are none */
};

enum { TEC_PROBE_MOST = 1000 };

struct tec_probe_options {
    const char *url, *key;                /* key NULL: none */
    const struct tec_client_trust *trust; /* for a URL with TLS; NULL: the URL is without */
    int connect_ms, reply_ms; /* longest time until the server's first message, and for a reply */
    int count; /* 1 .. TEC_PROBE_MOST requests that count, behind one that does not */
    const struct tec_value *values; /* [n]; NULL: drawn from `seed`, see draw.h */
    size_t n;                       /* at most TEC_MAX_INPUTS */
    uint64_t seed;
};

/* TEC_TIME where the server takes longer than it may; else as tec_client_connect, and TEC_MALFORMED
 * for what is no reply. */
enum tec_status tec_probe_run(struct tec_probe_times *out, const struct tec_probe_options *options,
                              struct tec_heap *heap, struct tec_error *err);

#endif
