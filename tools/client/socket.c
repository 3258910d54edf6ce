/* socket.c - a small WebSocket client: handshake, masked frames out, frames in. */
#include "tools/client/socket.h"

#include "base/number.h"
#include "tools/client/wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { MOST = 64 << 20, HEAD = 14, REFUSAL = 300 };
enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, FINAL = 0x80 };

/* --- the handshake ---------------------------------------------------------------------------- */

/* How a URL may begin, and the port where it has none: serve's, or that of its scheme. */
static const struct scheme {
    const char *text;
    bool secure;
    int port;
} schemes[] = {{"ws://", false, 8000}, {"wss://", true, 443}, {"https://", true, 443}};

static const struct scheme *scheme_of(const char *url)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(url, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

/* The URL with the scheme that it lacks, or in place of another one's. */
static enum tec_status refuse_scheme(const char *url, struct tec_error *err)
{
    const char *behind = strstr(url, "://");
    const char *place = behind ? behind + 3 : url;
    return tec_fail(err, TEC_INVALID, "%.120s: a URL like ws://%.120s is wanted, wss:// for TLS",
                    url, *place ? place : "robot:8000");
}

/* Keep the URL, and take its host and port, and whether it asks for TLS. */
static enum tec_status take_url(struct tec_client_socket *s, const char *url, char host[200],
                                char port[8], bool *secure, struct tec_error *err)
{
    const struct scheme *scheme = scheme_of(url);
    if (snprintf(s->url, sizeof s->url, "%s", url) >= (int)sizeof s->url)
        return tec_fail(err, TEC_INVALID, "a URL has at most %zu bytes", sizeof s->url - 1);
    if (!scheme)
        return refuse_scheme(s->url, err);
    const char *at = s->url + strlen(scheme->text);
    int64_t n = scheme->port;
    bool wrapped = *at == '[';
    at += wrapped;
    size_t length = strcspn(at, wrapped ? "]" : ":/");
    const char *behind = at + length + (wrapped && at[length] == ']');
    char digits[8] = "";
    if (*behind == ':')
        snprintf(digits, sizeof digits, "%.*s", (int)strcspn(behind + 1, "/"), behind + 1);
    if (length == 0 || length >= 200 || (*behind && *behind != ':' && *behind != '/') ||
        (*behind == ':' && (!tec_number_parse(digits, &n) || n < 1 || n > 65535)))
        return tec_fail(err, TEC_INVALID, "%s: a URL like %srobot:8000", s->url, scheme->text);
    for (const char *c = behind; *c; c++)
        if (*c <= ' ' || *c > '~')
            return tec_fail(err, TEC_INVALID, "%s: a path of printable ASCII without spaces",
                            s->url);
    memcpy(host, at, length);
    host[length] = '\0';
    snprintf(port, 8, "%d", (int)n);
    *secure = scheme->secure;
    return TEC_OK;
}

enum tec_status tec_client_check_url(const char *url, bool *secure, struct tec_error *err)
{
    struct tec_client_socket s = {.fd = -1};
    char host[200], port[8];
    *secure = false;
    return take_url(&s, url, host, port, secure, err);
}

/* The head of the server's answer, byte by byte: messages follow it at once. */
static enum tec_status read_head(struct tec_client_socket *s, bool secure, struct tec_error *err)
{
    char head[2048];
    size_t n = 0;
    do {
        TEC_TRY(tec_client_wire_take(s, &head[n], 1, err));
        head[++n] = '\0';
    } while (n < sizeof head - 1 && (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0));
    head[strcspn(head, "\r\n")] = '\0';
    if (strncmp(head, "HTTP/1.1 101", 12) == 0)
        return TEC_OK;
    bool perhaps = !secure && strncmp(head, "HTTP/1.1 400", 12) == 0; /* so tools/tls answers */
    return tec_fail(err, TEC_IO, "%s: the server says '%.80s'%s", s->url, head,
                    perhaps ? "; where it speaks TLS, the URL begins with wss://" : "");
}

/* The path of the URL, by which a proxy may know a robot; "/" where it has none. */
static const char *path_of(const char *url)
{
    const char *at = strchr(strstr(url, "://") + strlen("://"), '/');
    return at ? at : "/";
}

/* The request that begins it. An IPv6 address is in brackets, without the name of an interface,
 * which means nothing to the server (RFC 9110, 7.2; RFC 6874, 1). */
static enum tec_status send_head(struct tec_client_socket *s, const char *host, const char *port,
                                 const char *key, struct tec_error *err)
{
    char request[1024];
    bool v6 = strchr(host, ':') != NULL;
    int length = v6 ? (int)strcspn(host, "%") : (int)strlen(host);
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: %s%.*s%s:%s\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Key: dGVjdHVtIGNsaWVudCBrZQ==\r\n"
                     "Sec-WebSocket-Version: 13\r\n%s%s%s\r\n",
                     path_of(s->url), v6 ? "[" : "", length, host, v6 ? "]" : "", port,
                     key ? "Authorization: Api-Key " : "", key ? key : "", key ? "\r\n" : "");
    return n < (int)sizeof request ? tec_client_wire_send(s, request, (size_t)n, err)
                                   : tec_fail(err, TEC_INVALID, "the key is too long");
}

/* Connect to the URL, or use `fd` where that is a socket. */
static enum tec_status connect_by(struct tec_client_socket *s, int fd, const char *url,
                                  const char *key, struct tec_error *err)
{
    const struct timeval patience = {.tv_sec = TEC_CLIENT_PATIENCE_S};
    char host[200], port[8];
    bool secure = false;
    s->fd = fd;
    s->n = s->at = 0;
    tec_client_wire_begin(s);
    enum tec_status status = take_url(s, url, host, port, &secure, err);
    if (status == TEC_OK && secure && !(s->trust && s->trust->context))
        status = tec_fail(err, TEC_INVALID, "%s: nothing says whom to believe", s->url);
    if (status == TEC_OK && fd < 0)
        status = tec_client_wire_dial(s, host, port, err);
    if (status != TEC_OK) {
        tec_client_close(s);
        return status;
    }
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (secure)
        status = tec_client_wire_secure(s, host, err);
    if (status == TEC_OK)
        status = send_head(s, host, port, key, err);
    if (status == TEC_OK)
        status = read_head(s, secure, err);
    if (status != TEC_OK)
        tec_client_close(s);
    return status;
}

enum tec_status tec_client_connect(struct tec_client_socket *s, const char *url, const char *key,
                                   const struct tec_client_trust *trust, int asker, int wait_ms,
                                   struct tec_error *err)
{
    *s = (struct tec_client_socket){
        .fd = -1, .asker = asker, .wait_ms = wait_ms, .most = MOST, .trust = trust};
    return tec_client_connect_again(s, url, key, err);
}

enum tec_status tec_client_connect_over(struct tec_client_socket *s, int fd, const char *url,
                                        const char *key, int asker, struct tec_error *err)
{
    *s = (struct tec_client_socket){.fd = -1, .asker = asker, .most = MOST};
    return connect_by(s, fd, url, key, err);
}

enum tec_status tec_client_connect_again(struct tec_client_socket *s, const char *url,
                                         const char *key, struct tec_error *err)
{
    return connect_by(s, -1, url, key, err);
}

void tec_client_close(struct tec_client_socket *s)
{
    tec_client_wire_end(s);
}

bool tec_client_ended(struct tec_client_socket *s)
{
    return tec_client_wire_look(s, NULL) != TEC_OK ||
           (s->at < s->n && (s->held[s->at] & 15) == CLOSE);
}

/* --- frames ----------------------------------------------------------------------------------- */

static enum tec_status send_frame(struct tec_client_socket *s, int opcode, const void *data,
                                  size_t n, struct tec_error *err)
{
    static const uint8_t no_mask[4] = {0}; /* the rules ask for one; this hides nothing */
    uint8_t head[HEAD] = {(uint8_t)(FINAL | opcode)};
    size_t bytes = 2;
    head[1] = 0x80 | (n < 126 ? (uint8_t)n : n < 65536 ? 126 : 127);
    size_t length = n < 126 ? 0 : n < 65536 ? 2 : 8;
    for (size_t i = 0; i < length; i++)
        head[bytes++] = (uint8_t)((uint64_t)n >> (8 * (length - 1 - i)));
    memcpy(head + bytes, no_mask, sizeof no_mask);
    TEC_TRY(tec_client_wire_send(s, head, bytes + sizeof no_mask, err));
    return tec_client_wire_send(s, data, n, err);
}

enum tec_status tec_client_send(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err)
{
    tec_client_wire_begin(s);
    return send_frame(s, BINARY, data, n, err);
}

/* One frame's data behind what `out` has. */
static enum tec_status receive_frame(struct tec_client_socket *s, int *opcode, bool *last,
                                     struct tec_buffer *out, struct tec_error *err)
{
    uint8_t head[2] = {0}, longer[8] = {0};
    TEC_TRY(tec_client_wire_take(s, head, 2, err));
    uint64_t n = head[1] & 127;
    size_t length = n == 126 ? 2 : n == 127 ? 8 : 0;
    *opcode = head[0] & 15;
    *last = head[0] & FINAL;
    if (length)
        TEC_TRY(tec_client_wire_take(s, longer, length, err));
    n = length ? 0 : n;
    for (size_t i = 0; i < length; i++)
        n = n << 8 | longer[i];
    if (head[1] & 0x80 || head[0] & 0x70 || n > s->most || out->n + n > s->most)
        return tec_fail(err, TEC_MALFORMED, "%s: what it sends is no frame of a WebSocket server",
                        s->url);
    uint8_t *to = n ? tec_buffer_push(out, (size_t)n) : NULL;
    if (n && !to)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a reply");
    return n ? tec_client_wire_take(s, to, (size_t)n, err) : TEC_OK;
}

enum tec_status tec_client_receive(struct tec_client_socket *s, struct tec_buffer *out,
                                   bool *refused, struct tec_error *err)
{
    int kind = CONTINUATION, opcode;
    bool last = false;
    out->n = 0;
    while (!last) {
        size_t before = out->n;
        TEC_TRY(receive_frame(s, &opcode, &last, out, err));
        if (opcode == CLOSE)
            return tec_fail(err, TEC_IO, "%s: the server closed the connection", s->url);
        if (opcode == PING)
            TEC_TRY(send_frame(s, PONG, out->n > before ? out->data + before : NULL,
                               out->n - before, err));
        if (opcode == PING || opcode == PONG) {
            out->n = before;
            last = false;
            continue;
        }
        kind = opcode ? opcode : kind;
    }
    *refused = kind == TEXT;
    return TEC_OK;
}

const char *tec_client_refusal(const struct tec_buffer *reply, int *n)
{
    const char *text = reply->n ? (const char *)reply->data : "";
    size_t end = reply->n;
    while (end > 0 && reply->data[end - 1] <= ' ')
        end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    *n = end - begin < REFUSAL ? (int)(end - begin) : REFUSAL;
    return text + begin;
}

bool tec_client_pending(const struct tec_client_socket *s)
{
    return s->at < s->n || tec_client_secure_pending(&s->secure);
}

enum tec_status tec_client_idle(struct tec_client_socket *s, struct tec_buffer *out,
                                struct tec_error *err)
{
    int opcode;
    bool last;
    tec_client_wire_begin(s);
    out->n = 0;
    TEC_TRY(tec_client_wire_look(s, err));
    if (s->at == s->n)
        return TEC_OK; /* records of TLS's own */
    TEC_TRY(receive_frame(s, &opcode, &last, out, err));
    if (opcode == CLOSE)
        return tec_fail(err, TEC_IO, "%s: the server closed the connection", s->url);
    return opcode == PING ? send_frame(s, PONG, out->data, out->n, err) : TEC_OK;
}
