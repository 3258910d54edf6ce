/* flight_source.c - gets a flight recorder's events from a file, or has a robot write one. */
#include "tools/record/flight_source.h"

#include "tools/control/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The robot writes into a file of this user's that is gone once it has been read. */
static enum tec_status of_robot(struct tec_flight *f, struct tec_invocation *call,
                                const char *control, double last_s, struct tec_error *err)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    json_t *answer = NULL;
    int n = snprintf(path, sizeof path, "%s/tectum-recorder-XXXXXX", folder ? folder : P_tmpdir);
    int fd = n < (int)sizeof path ? mkstemp(path) : -1;
    if (fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
    close(fd);
    enum tec_status status = tec_control_ask(
        call->heap, control,
        json_pack("{s:s, s:s, s:f}", "cmd", "recorder", "path", path, "last_s", last_s), &answer,
        err);
    json_decref(answer);
    if (status == TEC_OK)
        status = tec_flight_open_idle(f, path, call->heap, err);
    unlink(path);
    return status;
}

enum tec_status tec_flight_of_call(struct tec_flight *f, struct tec_invocation *call,
                                   const char *control, double last_s, struct tec_error *err)
{
    *f = (struct tec_flight){.about = NULL};
    if ((call->args.n == 0) == (control == NULL))
        return tec_fail(err, TEC_INVALID,
                        "%s takes a recording, or --control PATH, the socket of a running robot",
                        call->verb);
    if (control)
        return of_robot(f, call, control, last_s, err);
    TEC_TRY(tec_flight_open(f, call->args.item[0], call->heap, err));
    if (f->file.damage[0])
        tec_say(call, "%s: %s", call->args.item[0], f->file.damage);
    return TEC_OK;
}
