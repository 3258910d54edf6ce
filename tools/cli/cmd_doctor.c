/* cmd_doctor.c - what of this machine decides how fast and how evenly frames run, and what would
 * help. */
#include "base/json_text.h"
#include "tools/cli/command.h"
#include "tools/measure/doctor.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct doctor_options {
    bool quick;
    const char *system;
};

#define AT(member) offsetof(struct doctor_options, member)
static const struct tec_option options[] = {
    {"quick", 0, TEC_OPTION_FLAG, NULL, "do not time how fast memory is read (a second)", AT(quick),
     0, 0},
    {"system", 0, TEC_OPTION_TEXT, "DIR",
     "look at the copies of /proc and /sys in this folder, of another machine", AT(system), 0, 0},
};

/* A path that was mistaken would be a machine of which nothing is known, so nothing to mend. */
static enum tec_status look_at(const char *system, struct tec_error *err)
{
    struct stat there;
    if (stat(system, &there) != 0)
        return tec_fail(err, TEC_IO, "--system: %s: %s", system, strerror(errno));
    if (!S_ISDIR(there.st_mode))
        return tec_fail(err, TEC_IO, "--system: %s: is no folder", system);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct doctor_options *o = call->options;
    json_t *report = NULL;
    if (o->system)
        TEC_TRY(look_at(o->system, err));
    TEC_TRY(tec_doctor_look(&report, o->system ? o->system : "", !o->quick && !o->system,
                            call->heap, err));
    enum tec_status status = TEC_OK;
    if (call->shared.format == TEC_FORMAT_JSON)
        status = tec_json_print(call->out, report, JSON_COMPACT, "the report", err);
    else
        tec_doctor_print(report, call->out);
    json_decref(report);
    return status;
}

const struct tec_command tec_command_doctor = {
    .usage = "doctor [options]",
    .about =
        "Reads /proc and /sys and changes nothing. JSON: {cpu, isa[], tier, tiers[], cores, "
        "clocks,\n"
        "governor, huge_pages, memory, power, scheduling, gpu, advice[]}; null is what the system\n"
        "does not say.\n",
    .example = "  tectum doctor\n"
               "  tectum doctor --quick --format json\n",
    .takes = TEC_TAKES_FORMAT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct doctor_options),
    .run = run,
};
