/* invocation.c - what a verb does with its call: it says lines on stderr, and finds the folder of
 * the shipped files. */
#include "base/escape.h"
#include "tools/api/root.h"
#include "tools/cli/command.h"

#include <stdarg.h>

void tec_say(const struct tec_invocation *call, const char *format, ...)
{
    char text[8192], shown[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tec_escape(shown, sizeof shown, text);
    /* a single write keeps lines of other threads from coming in between */
    fprintf(stderr, "tectum %s: %s\n", call->verb, shown);
}

enum tec_status tec_cli_need_root(struct tec_invocation *call, struct tec_error *err)
{
    if (call->root)
        return TEC_OK;
    return tec_root_find(&call->root, call->shared.root, call->arena, err);
}
