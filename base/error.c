#include "base/error.h"

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

enum tec_status tec_fail(struct tec_error *err, enum tec_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

enum tec_status tec_context(struct tec_error *err, enum tec_status status, const char *format, ...)
{
    if (status != TEC_OK && err) {
        char prefix[sizeof err->message / 2];
        va_list args;
        va_start(args, format);
        vsnprintf(prefix, sizeof prefix, format, args);
        va_end(args);
        size_t n = strlen(prefix), room = sizeof err->message - n - 3;
        memmove(err->message + n + 2, err->message, room);
        memcpy(err->message, prefix, n);
        memcpy(err->message + n, ": ", 2);
        err->message[sizeof err->message - 1] = '\0';
    }
    return status;
}
