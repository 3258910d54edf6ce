/* http_context.c - a context of libwebsockets with a listener of ours. */
#include "tools/serve/http_context.h"

enum { INTERNAL = 32 /* descriptors of the library's own, beside sockets */ };

static const lws_retry_bo_t no_pings = {.secs_since_valid_ping = 0, .secs_since_valid_hangup = 0};

enum tec_status tec_http_open(struct lws_context **context, struct lws **door,
                              const struct tec_http_context *what, struct tec_error *err)
{
    const struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = what->protocols,
        .vhost_name = "default",
        .gid = -1,
        .uid = -1,
        .user = what->user,
        .timeout_secs = TEC_HTTP_SECONDS,
        .timeout_secs_ah_idle = TEC_HTTP_SECONDS,
        .keepalive_timeout = TEC_HTTP_SECONDS,
        .pt_serv_buf_size = what->chunk,
        .fd_limit_per_thread = what->sockets + INTERNAL,
        .retry_and_idle_policy = &no_pings,
        .server_string = "tectum",
    };
    lws_sock_file_fd_type file = {.filefd = what->listener};
    lws_set_log_level(0, NULL);
    *door = NULL;
    *context = lws_create_context(&info);
    if (!*context)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for libwebsockets");
    *door =
        lws_adopt_descriptor_vhost(lws_get_vhost_by_name(*context, "default"),
                                   LWS_ADOPT_RAW_FILE_DESC, file, what->protocols[0].name, NULL);
    return *door ? TEC_OK
                 : tec_fail(err, TEC_NO_MEMORY,
                            "libwebsockets has no memory for the listening socket");
}
