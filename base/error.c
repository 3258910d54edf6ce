/* error.c - how a call reports failure: a status to branch on, a sentence to read. */
#include "base/error.h"

#include "base/escape.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} statuses[] = {
#define STATUS(name, text) [TEC_##name] = {#name, (text)},
#include "base/status.def"
#undef STATUS
};

static const size_t n_statuses = sizeof statuses / sizeof statuses[0];

const char *tec_status_text(enum tec_status status)
{
    return (size_t)status < n_statuses ? statuses[status].text : "unknown status";
}

const char *tec_status_name(enum tec_status status)
{
    return (size_t)status < n_statuses ? statuses[status].name : "UNKNOWN";
}

/* A sentence that is too long ends with a word of it and three points; a word of more than WORD
 * bytes is cut behind a whole character. */
static void put(struct tec_error *err, const char *text)
{
    enum { ROOM = sizeof err->message, END = ROOM - sizeof " ...", WORD = 60 };
    char shown[2 * ROOM];
    size_t n = tec_escape(shown, sizeof shown, text);
    if (n >= ROOM) {
        n = END;
        while (n > END - WORD && shown[n] != ' ')
            n--;
        if (shown[n] != ' ')
            n = tec_escape(shown, ROOM - 3, text);
        n += (size_t)snprintf(shown + n, sizeof shown - n, shown[n] == ' ' ? " ..." : "...");
    }
    memcpy(err->message, shown, n + 1);
}

enum tec_status tec_fail(struct tec_error *err, enum tec_status status, const char *format, ...)
{
    if (err) {
        char text[2 * sizeof err->message];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        put(err, text);
        err->status = status;
    }
    return status;
}

enum tec_status tec_context(struct tec_error *err, enum tec_status status, const char *format, ...)
{
    if (status != TEC_OK && err) {
        char text[2 * sizeof err->message + 2];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof err->message, format, args);
        va_end(args);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, ": %s", err->message);
        put(err, text);
    }
    return status;
}
