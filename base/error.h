/* error.h - how a call reports failure: a status to branch on, a sentence to read. */
#ifndef TEC_BASE_ERROR_H
#define TEC_BASE_ERROR_H

enum tec_status {
#define STATUS(name, text) TEC_##name,
#include "base/status.def"
#undef STATUS
};

/* Filled by the callee on failure only; the caller owns it, usually on its stack. */
struct tec_error {
    enum tec_status status;
    char message[400]; /* one line, complete enough to print as it is */
};

/* Record `status` and a printf-style sentence in `err` (NULL is allowed), return `status`. Names
 * and texts from outside may be printed as they are: what a terminal or a log would take for more
 * than text is escaped here (base/escape.h), so that a message is one line of UTF-8. What is too
 * long ends between two words, with "...". */
enum tec_status tec_fail(struct tec_error *err, enum tec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prefix the message of a failure on its way up: "load model.safetensors: <message>". Returns
 * `status`; does nothing when it is TEC_OK. */
enum tec_status tec_context(struct tec_error *err, enum tec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Static text and name ("NO_MEMORY") of a status; never NULL. */
const char *tec_status_text(enum tec_status status);
const char *tec_status_name(enum tec_status status);

/* Return early on failure. Only where nothing needs releasing: arenas own the rest. */
#define TEC_TRY(call)                      \
    do {                                   \
        enum tec_status tec_try_ = (call); \
        if (tec_try_ != TEC_OK)            \
            return tec_try_;               \
    } while (0)

#endif
