/* view_http.c - what is answered at the port of the page: requests for the page and its data, and
 * handshakes of Foxglove's programs, which are judged here. */
#include "base/text/base64.h"
#include "tools/record/view_own.h"
#include "tools/record/view_page.h"
#include "tools/serve/http_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { FRAMES = 2000, SOCKET_BYTES = 64 << 10, AT_ONCE = 8, NAME = 256 };

static const struct tec_http_field fields[] = {
    {"cache-control:", "no-store"},
    {"x-content-type-options:", "nosniff"},
    {"content-security-policy:",
     "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
     "'self'; frame-ancestors 'none'"},
    {NULL, NULL}};

static int say(struct lws *wsi, unsigned status, const char *text)
{
    return tec_http_say(wsi, status, fields, text);
}

/* --- who may look ----------------------------------------------------------------------------- */

/* Whether `text` is `name`, alone or before a port. */
static bool is_at(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(text, name, n) == 0 && (!text[n] || text[n] == ':');
}

/* A name of another machine that was made to point here may not read the page (DNS rebinding). */
static bool is_ours(struct lws *wsi)
{
    char host[NAME];
    return tec_http_header(wsi, WSI_TOKEN_HOST, host, sizeof host) > 0 &&
           (is_at(host, "127.0.0.1") || is_at(host, "localhost") || is_at(host, "[::1]"));
}

/* Any page that a browser shows may open a WebSocket to this machine, and the browser then says
 * whose page it is. Programs that are no browser say nothing; a page that is a file says so. */
static bool may_look(struct lws *wsi, const char *origin)
{
    char host[NAME];
    static const char *const here[] = {"http://127.0.0.1",  "http://localhost",  "http://[::1]",
                                       "https://127.0.0.1", "https://localhost", "https://[::1]"};
    char from[NAME];
    if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) == 0)
        return true;
    if (tec_http_header(wsi, WSI_TOKEN_ORIGIN, from, sizeof from) < 0)
        return false;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        if (is_at(from, here[i]))
            return true;
    /* The page of this very port, which who may not come has not read. */
    const char *site = strstr(from, "://");
    if (site && tec_http_header(wsi, WSI_TOKEN_HOST, host, sizeof host) > 0 &&
        strcasecmp(site + 3, host) == 0)
        return true;
    return strcmp(from, "file://") == 0 || (origin && strcmp(from, origin) == 0);
}

/* Whether a client names one of the protocols: the library then takes the first that it can. */
static bool speaks(struct lws *wsi)
{
    char names[NAME], *rest = names;
    if (tec_http_header(wsi, WSI_TOKEN_PROTOCOL, names, sizeof names) < 0)
        return false;
    for (const char *one; (one = strsep(&rest, ", \t")) != NULL;)
        if (strcmp(one, TEC_FOXGLOVE_PROTOCOL) == 0 || strcmp(one, TEC_FOXGLOVE_PROTOCOL_SDK) == 0)
            return true;
    return false;
}

/* Browsers ask their user, and send a name, which is not looked at, and the key as its password
 * (RFC 7617); programs send it as they do to the server itself. */
static bool shows_key(struct lws *wsi, const struct tec_key *key)
{
    static const char basic[] = "Basic ", bearer[] = "Bearer ";
    char text[2 * TEC_KEY_MAX], plain[2 * TEC_KEY_MAX], again[2 * TEC_KEY_MAX];
    size_t n;
    int length = tec_http_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text);
    if (length <= 0 || strncasecmp(text, basic, sizeof basic - 1) != 0)
        return length > 0 && tec_key_fits(key, text, (size_t)length);
    const char *shown = text + sizeof basic - 1;
    if (!tec_base64_read(plain, sizeof plain - 1, shown, strlen(shown), &n))
        return false;
    plain[n] = '\0';
    const char *colon = strchr(plain, ':');
    int all = snprintf(again, sizeof again, "%s%s", bearer, colon ? colon + 1 : "");
    return all < (int)sizeof again && tec_key_fits(key, again, (size_t)all);
}

/* Who asks may look at all; else the socket is answered and closed. */
static bool may_come(const struct tec_view *v, struct lws *wsi)
{
    static const struct tec_http_field challenge[] = {
        {"www-authenticate:", "Basic realm=\"robot\", charset=\"UTF-8\""}, {NULL, NULL}};
    if (v->afar ? shows_key(wsi, v->afar->key) : is_ours(wsi))
        return true;
    if (v->afar)
        tec_http_say(wsi, 401, challenge,
                     "This robot asks for its key, as a password or as Authorization: Bearer "
                     "KEY.\n");
    else
        say(wsi, 403, "This page is for this machine alone.\n");
    return false;
}

static int judge(const struct tec_view *v, struct lws *wsi)
{
    char what[32], version[8];
    if (!may_come(v, wsi))
        return -1;
    if (!may_look(wsi, v->origin))
        return say(wsi, 400,
                   "Web pages of elsewhere may not look at this robot; --view-origin "
                   "names one.\n");
    if (tec_http_header(wsi, WSI_TOKEN_UPGRADE, what, sizeof what) < 0 ||
        strcasecmp(what, "websocket") != 0 ||
        tec_http_header(wsi, WSI_TOKEN_VERSION, version, sizeof version) < 0 ||
        strcmp(version, "13") != 0)
        return say(wsi, 400, "This is no handshake of a WebSocket of version 13.\n");
    if (!speaks(wsi))
        return say(wsi, 400,
                   "The protocols here are " TEC_FOXGLOVE_PROTOCOL " and " TEC_FOXGLOVE_PROTOCOL_SDK
                   ".\n");
    return tec_foxglove_full(v->foxglove)
               ? say(wsi, 503, "As many programs as may look at this robot do so already.\n")
               : 0;
}

/* --- the page --------------------------------------------------------------------------------- */

static int answer_page(const struct tec_view *v, struct lws *wsi)
{
    struct tec_buffer page = {.heap = v->heap};
    tec_view_page(&page, v->o.opened->pipeline->name, NULL);
    int result = page.failed ? say(wsi, 503, "There is no memory for the page.\n")
                             : tec_http_reply(wsi, 200, "text/html; charset=utf-8", fields,
                                              page.data, page.n, v->heap);
    tec_buffer_finish(&page);
    return result;
}

static int answer_data(const struct tec_view *v, struct lws *wsi)
{
    struct tec_buffer data = {.heap = v->heap};
    struct tec_flight flight;
    struct tec_error err = {.message = ""};
    char text[NAME];
    const char *after = lws_get_urlarg_by_name(wsi, "after=", text, sizeof text);
    double after_ms = after ? strtod(after, NULL) : -1.0;
    bool sane = after_ms > 0.0 && after_ms < 1e12;
    /* A page knows a time to a nanosecond or so: a frame is newer by more. */
    int64_t after_ns = sane ? (int64_t)(after_ms * 1e6) + 1000 : INT64_MIN;
    enum tec_status status = tec_flight_now(&flight, v->o.recorder, v->about, v->heap, &err);
    if (status == TEC_OK) {
        status = tec_view_data(&data, &flight, after_ns, FRAMES, &err);
        tec_flight_close(&flight);
    }
    int result = status == TEC_OK ? tec_http_reply(wsi, 200, "application/json", fields, data.data,
                                                   data.n, v->heap)
                                  : say(wsi, 503, "There is no memory for the data.\n");
    tec_buffer_finish(&data);
    return result;
}

static int answer(const struct tec_view *v, struct lws *wsi, const char *path)
{
    if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) == 0)
        return say(wsi, 400, "This page is read with GET.\n");
    if (!may_come(v, wsi))
        return -1;
    if (strcmp(path, "/view") == 0 || strcmp(path, "/") == 0)
        return answer_page(v, wsi);
    if (strcmp(path, "/data") == 0)
        return answer_data(v, wsi);
    return say(wsi, 404, "The page is at /view.\n");
}

/* --- events ----------------------------------------------------------------------------------- */

static void take_new(struct tec_view *v)
{
    const int bytes = SOCKET_BYTES;
    for (int n = 0, fd; n < AT_ONCE && (fd = tec_listen_accept(&v->listener)) >= 0; n++) {
        if (v->sockets >= TEC_VIEW_SOCKETS) {
            tec_listen_refuse(fd);
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        lws_adopt_socket(v->context, fd); /* where it fails, it has closed the socket */
    }
}

static int on_client(struct tec_view *v, struct lws *wsi, enum lws_callback_reasons reason,
                     struct tec_view_visitor *visitor, const void *in, size_t n)
{
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        visitor->client = tec_foxglove_enter(v->foxglove, wsi);
        return visitor->client ? 0 : -1;
    case LWS_CALLBACK_RECEIVE:
        tec_foxglove_came(v->foxglove, visitor->client, in, n);
        break;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return tec_foxglove_writable(visitor->client);
    case LWS_CALLBACK_TIMER: /* it does not take its end */
        shutdown(lws_get_socket_fd(wsi), SHUT_RDWR);
        break;
    default:
        tec_foxglove_left_by(v->foxglove, visitor->client);
        visitor->client = NULL;
        break;
    }
    tec_view_keep_pace(v);
    return 0;
}

int tec_view_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t n)
{
    struct tec_view *v = lws_context_user(lws_get_context(wsi));
    struct tec_view_visitor *visitor = user;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        return on_client(v, wsi, reason, visitor, in, n);
    case LWS_CALLBACK_RECEIVE:
    case LWS_CALLBACK_SERVER_WRITEABLE:
    case LWS_CALLBACK_TIMER:
    case LWS_CALLBACK_CLOSED:
        return visitor && visitor->client ? on_client(v, wsi, reason, visitor, in, n) : 0;
    case LWS_CALLBACK_HTTP:
        return answer(v, wsi, in);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return judge(v, wsi);
    case LWS_CALLBACK_RAW_RX_FILE:
        if (wsi == v->door)
            take_new(v);
        return 0;
    case LWS_CALLBACK_WSI_CREATE:
        v->sockets++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        v->sockets--;
        return 0;
    case LWS_CALLBACK_HTTP_BODY: /* the rest of a request that was answered: closed, not read */
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return -1;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, n);
    }
}
