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

enum tec_status tec_gateways_bind(struct tec_gateways *g, const struct tec_gateways_asked *asked,
                                  const char *address, struct tec_error *err)
{
    g->asked = *asked;
    g->listener = (struct tec_listener){-1, -1};
    if (asked->groot)
        TEC_TRY(read_port(&g->groot_port, "--groot-port", asked->groot, err));
    if (!asked->act)
        return TEC_OK;
    TEC_TRY(read_port(&g->act_port, "--act-port", asked->act, err));
    char bare[80];
    bool six = address[0] == '[';
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(address + six, "]"), address + six);
    return tec_context(err, tec_listen_bind(&g->listener, bare, g->act_port, err), "--act-port");
}

static enum tec_status start_act(struct tec_gateways *g, const struct tec_gateways_options *o,
                                 const char *url, struct tec_error *err)
{
    TEC_TRY(tec_listen_start(&g->listener, &g->act_port, err));
    const struct tec_act_server_options act = {
        .listener = g->listener,
        .names = o->names,
        .url = url,
        .key = o->key,
        .heap = o->heap,
        .max_message = o->max_message,
        .max_connections =
            o->max_connections < TEC_UPSTREAM_MOST ? o->max_connections : TEC_UPSTREAM_MOST,
        .stall_s = o->stall_s};
    g->listener = (struct tec_listener){-1, -1}; /* given */
    return tec_act_server_start(&g->act, &act, err);
}

static enum tec_status start_groot(struct tec_gateways *g, const struct tec_gateways_options *o,
                                   const char *url, struct tec_error *err)
{
    const struct tec_groot_server_options groot = {
        .host = o->host,
        .port = g->groot_port,
        .names = o->names,
        .rows = o->rows,
        .url = url,
        .key = o->key,
        .heap = o->heap,
        .max_message = o->max_message,
        .workers = o->max_connections < TEC_GROOT_WORKERS ? o->max_connections : TEC_GROOT_WORKERS};
    return tec_context(err, tec_groot_server_start(&g->groot, &g->groot_port, &groot, err),
                       "--groot-port");
}

enum tec_status tec_gateways_start(struct tec_gateways *g,
                                   const struct tec_gateways_options *options,
                                   struct tec_error *err)
{
    char url[400];
    const char *host = strcmp(options->host, "0.0.0.0") == 0 ? "127.0.0.1"
                       : strcmp(options->host, "[::]") == 0  ? "[::1]"
                                                             : options->host;
    if ((g->asked.act || g->asked.groot) && !options->names.robot)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: the pipeline has no robot to act",
                        g->asked.act ? "--act-port" : "--groot-port");
    snprintf(url, sizeof url, "ws://%s:%d", host, options->port);
    if (g->asked.act)
        TEC_TRY(start_act(g, options, url, err));
    return g->asked.groot ? start_groot(g, options, url, err) : TEC_OK;
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
        tec_listen_close(&g->listener);
}
