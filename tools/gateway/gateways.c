/* gateways.c - starts and ends the gateways that are asked for. */
#include "tools/gateway/gateways.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

static enum tec_status read_port(int *port, const char *option, const char *text,
                                 struct tec_error *err)
{
    int64_t n;
    if (!tec_number_parse(text, &n) || n < 0 || n > 65535)
        return tec_fail(err, TEC_INVALID, "%s: '%.40s' is not a whole number, 0 to 65535", option,
                        text);
    *port = (int)n;
    return TEC_OK;
}

/* Robots of a gateway. */
static int most(int max_connections)
{
    return max_connections < TEC_UPSTREAM_MOST ? max_connections : TEC_UPSTREAM_MOST;
}

int tec_gateways_count(const struct tec_gateways_asked *asked)
{
    return (asked->act != NULL) + (asked->groot != NULL);
}

int tec_gateways_descriptors(const struct tec_gateways_asked *asked, int max_connections)
{
    enum { OTHERS = 8 /* what listens, and what wakes it */ };
    return tec_gateways_count(asked) * (TEC_GATEWAY_PLACES + 2 * most(max_connections) + OTHERS);
}

static enum tec_status bind_one(struct tec_listener *l, int *port, const char *option,
                                const char *text, const char *address, struct tec_error *err)
{
    *l = (struct tec_listener){.fd = -1, .spare = -1};
    if (!text)
        return TEC_OK;
    TEC_TRY(read_port(port, option, text, err));
    return tec_listen_bind(l, address, *port, option, err);
}

enum tec_status tec_gateways_bind(struct tec_gateways *g, const struct tec_gateways_asked *asked,
                                  const char *address, struct tec_error *err)
{
    char bare[80];
    bool six = address[0] == '[';
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(address + six, "]"), address + six);
    g->groot_listener = (struct tec_listener){.fd = -1, .spare = -1};
    g->asked = *asked;
    TEC_TRY(bind_one(&g->act_listener, &g->act_port, "--act-port", asked->act, bare, err));
    return bind_one(&g->groot_listener, &g->groot_port, "--groot-port", asked->groot, bare, err);
}

/* Listen, and make options of it; the listener is given with them. */
static enum tec_status listen_on(struct tec_gateway_options *out, struct tec_listener *l, int *port,
                                 const struct tec_gateways_options *o, const char *url,
                                 struct tec_error *err)
{
    TEC_TRY(tec_listen_start(l, port, err));
    *out = (struct tec_gateway_options){.listener = *l,
                                        .names = o->names,
                                        .rows = o->rows,
                                        .url = url,
                                        .key = o->key,
                                        .front = o->front,
                                        .heap = o->heap,
                                        .max_message = o->max_message,
                                        .max_connections = most(o->max_connections),
                                        .stall_s = o->stall_s};
    *l = (struct tec_listener){.fd = -1, .spare = -1};
    return TEC_OK;
}

enum tec_status tec_gateways_start(struct tec_gateways *g,
                                   const struct tec_gateways_options *options,
                                   struct tec_error *err)
{
    char url[400];
    struct tec_gateway_options of;
    const char *host = strcmp(options->host, "0.0.0.0") == 0 ? "127.0.0.1"
                       : strcmp(options->host, "[::]") == 0  ? "[::1]"
                                                             : options->host;
    if ((g->asked.act || g->asked.groot) && !options->names.robot)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: the pipeline has no robot to act",
                        g->asked.act ? "--act-port" : "--groot-port");
    snprintf(url, sizeof url, "ws://%s:%d", host, options->port);
    if (g->asked.act) {
        TEC_TRY(listen_on(&of, &g->act_listener, &g->act_port, options, url, err));
        TEC_TRY(tec_act_server_start(&g->act, &of, err));
    }
    if (g->asked.groot) {
        TEC_TRY(listen_on(&of, &g->groot_listener, &g->groot_port, options, url, err));
        TEC_TRY(tec_groot_server_start(&g->groot, &of, err));
    }
    return TEC_OK;
}

void tec_gateways_leave(struct tec_gateways *g)
{
    tec_act_server_leave(&g->act);
    tec_groot_server_leave(&g->groot);
}

void tec_gateways_stop(struct tec_gateways *g)
{
    tec_act_server_stop(&g->act);
    tec_groot_server_stop(&g->groot);
    if (g->asked.act)
        tec_listen_close(&g->act_listener);
    if (g->asked.groot)
        tec_listen_close(&g->groot_listener);
}
