/* asked.h - what run and serve take to be looked at: --record, --record-mib, --view,
 * --view-origin. */
#ifndef TEC_TOOLS_RECORD_ASKED_H
#define TEC_TOOLS_RECORD_ASKED_H

#include "tools/record/view.h"

/* Values of the options; zeroed: none was given. */
struct tec_recording_asked {
    const char *file, *view, *origin;
    int mib;
};

/* Rows of a verb's table of options; `at`: the offset of that struct in the verb's own. */
#define TEC_RECORDING_ROWS(at)                                                                 \
    {"record",                                                                                 \
     0,                                                                                        \
     TEC_OPTION_TEXT,                                                                          \
     "FILE.mcap",                                                                              \
     "everything that comes in, is decided and leaves, see doc/recording.md",                  \
     (at) + offsetof(struct tec_recording_asked, file),                                        \
     0,                                                                                        \
     0},                                                                                       \
        {"record-mib",                                                                         \
         0,                                                                                    \
         TEC_OPTION_INT,                                                                       \
         "N",                                                                                  \
         "the recording ends at N MiB; 4096",                                                  \
         (at) + offsetof(struct tec_recording_asked, mib),                                     \
         1,                                                                                    \
         1 << 20},                                                                             \
        {"view",                                                                               \
         0,                                                                                    \
         TEC_OPTION_TEXT,                                                                      \
         "PORT",                                                                               \
         "a page of the frames at http://127.0.0.1:PORT/view; Foxglove's programs connect to " \
         "ws://127.0.0.1:PORT; 0 = any port, printed",                                         \
         (at) + offsetof(struct tec_recording_asked, view),                                    \
         0,                                                                                    \
         0},                                                                                   \
    {                                                                                          \
        "view-origin", 0, TEC_OPTION_TEXT, "URL",                                              \
            "pages of that site may connect there too, as https://app.foxglove.dev",           \
            (at) + offsetof(struct tec_recording_asked, origin), 0, 0                          \
    }

/* Judge the options before minutes are spent on reading weights. TEC_INVALID, TEC_IO. */
enum tec_status tec_recording_asked_check(const struct tec_recording_asked *asked,
                                          struct tec_error *err);

/* Open what was asked for; of `options` path and limit_mib are set here. *recording is NULL where
 * there is none; afar NULL: this machine alone may look. */
enum tec_status tec_recording_asked_open(struct tec_recording **recording, struct tec_view **view,
                                         const struct tec_recording_asked *asked,
                                         const struct tec_view_afar *afar,
                                         const struct tec_recording_options *options,
                                         struct tec_error *err);

/* Close both, behind the last frame and before the engine. Returns `status`, or that of the file
 * where `status` is TEC_OK. */
enum tec_status tec_recording_asked_close(struct tec_recording *recording, struct tec_view *view,
                                          enum tec_status status, struct tec_error *err);

#endif
