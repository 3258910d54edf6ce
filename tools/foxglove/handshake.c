/* handshake.c - judges and answers requests for a WebSocket of Foxglove's protocol. */
#include "tools/foxglove/handshake.h"

#include "base/text/base64.h"
#include "tools/foxglove/websocket.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Both name the same messages. A client names what it speaks, the best first. */
static const char *const protocols[] = {"foxglove.websocket.v1", "foxglove.sdk.v1"};
enum { PROTOCOLS = sizeof protocols / sizeof protocols[0], KEY = 24, NONCE = 16 };

/* The value of a header, and how long it is; NULL: there is none. */
static const char *header(const char *head, const char *name, size_t *n)
{
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, length) != 0 || at[length] != ':')
            continue;
        at += length + 1;
        at += strspn(at, " \t");
        *n = strcspn(at, "\r\n");
        while (*n > 0 && (at[*n - 1] == ' ' || at[*n - 1] == '\t'))
            --*n;
        return at;
    }
    *n = 0;
    return NULL;
}

/* The next of a list of words between commas; NULL: there is none. */
static const char *next_word(const char **at, const char *end, size_t *n)
{
    while (*at < end && (**at == ',' || **at == ' ' || **at == '\t'))
        ++*at;
    const char *word = *at;
    while (*at < end && **at != ',' && **at != ' ' && **at != '\t')
        ++*at;
    *n = (size_t)(*at - word);
    return *n > 0 ? word : NULL;
}

static bool has_word(const char *head, const char *name, const char *wanted)
{
    size_t n, length = strlen(wanted);
    const char *at = header(head, name, &n), *end = at ? at + n : NULL, *word;
    while (at && (word = next_word(&at, end, &n)) != NULL)
        if (n == length && strncasecmp(word, wanted, n) == 0)
            return true;
    return false;
}

static const char *protocol_of(const char *head)
{
    size_t n;
    const char *at = header(head, "Sec-WebSocket-Protocol", &n), *end = at ? at + n : NULL, *word;
    while (at && (word = next_word(&at, end, &n)) != NULL)
        for (int i = 0; i < PROTOCOLS; i++)
            if (n == strlen(protocols[i]) && strncmp(word, protocols[i], n) == 0)
                return protocols[i];
    return NULL;
}

/* Any page that a browser shows may open a WebSocket to this machine, and the browser then says
 * whose page it is. Programs that are no browser say nothing; a page that is a file says so. */
static bool may_look(const char *head, const char *origin)
{
    static const char *const here[] = {"http://127.0.0.1",  "http://localhost",  "http://[::1]",
                                       "https://127.0.0.1", "https://localhost", "https://[::1]"};
    size_t n;
    const char *from = header(head, "Origin", &n);
    if (!from || (n == 7 && strncmp(from, "file://", n) == 0))
        return true;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        size_t length = strlen(here[i]);
        if (n >= length && strncmp(from, here[i], length) == 0 &&
            (n == length || from[length] == ':'))
            return true;
    }
    return origin && n == strlen(origin) && strncmp(from, origin, n) == 0;
}

bool tec_foxglove_asks(const char *head)
{
    return has_word(head, "Upgrade", "websocket");
}

const char *tec_foxglove_answer(const char *head, const char *origin, char *answer, size_t room)
{
    size_t n, version_n, bytes;
    uint8_t nonce[NONCE];
    char accept[TEC_WEBSOCKET_ACCEPT + 1];
    const char *key = header(head, "Sec-WebSocket-Key", &n), *protocol = protocol_of(head);
    const char *version = header(head, "Sec-WebSocket-Version", &version_n);
    if (!may_look(head, origin))
        return "Web pages of elsewhere may not look at this robot; --view-origin names one.\n";
    if (!has_word(head, "Connection", "Upgrade") || !version || version_n != 2 ||
        strncmp(version, "13", 2) != 0 || !key || n != KEY ||
        !tec_base64_read(nonce, sizeof nonce, key, n, &bytes) || bytes != NONCE)
        return "This is no handshake of a WebSocket of version 13.\n";
    if (!protocol)
        return "The protocols here are foxglove.websocket.v1 and foxglove.sdk.v1.\n";
    tec_websocket_accept(accept, key, n);
    snprintf(answer, room,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
             accept, protocol);
    return NULL;
}
