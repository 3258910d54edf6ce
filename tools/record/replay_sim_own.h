/* replay_sim_own.h - what the files of a simulated replay share. */
#ifndef TEC_TOOLS_RECORD_REPLAY_SIM_OWN_H
#define TEC_TOOLS_RECORD_REPLAY_SIM_OWN_H

#include "tools/cli/open_engine.h"
#include "tools/record/flight_costs.h"
#include "tools/record/recorded_run.h"
#include "tools/record/replay.h"
#include "tools/record/replay_options.h"
#include "tools/record/replay_page.h"
#include "tools/simulate/summary.h"

/* What comes to the simulated robot. */
struct tec_replay_arrival {
    const struct tec_recorded_moment *moment;
    int64_t at_ns, number;
    bool again; /* a tick of that number is not recorded: the moment before stands for it */
};

struct tec_replay_sim {
    const struct tec_replay_options *o;
    struct tec_invocation *call;
    struct tec_recorded_run run;
    struct tec_replay_source source;
    enum tec_recording_mode mode;
    struct tec_opened opened;
    struct tec_virtual device[TEC_MAX_CHAINS];
    struct tec_cost_table costs;
    struct tec_frame_input inputs[TEC_MAX_SESSIONS];
    struct tec_counted
        counted[TEC_MAX_SESSIONS]; /* of a period's ticks: what texts are counted by */
    struct tec_ask asks[TEC_MAX_SESSIONS][TEC_MAX_ASKS];
    int64_t cancels[TEC_MAX_SESSIONS][TEC_MAX_ASKS];

    int64_t now_ns; /* the virtual clock: begins where the recording does */
    const struct tec_recorded_part *parts[TEC_MAX_SESSIONS]; /* of the frame, by session */
    size_t newest;                                           /* requests up to there are known */
    int n_between;
    json_t *notes; /* of the frame's decision */
    struct tec_summary summary;
    struct tec_replay_page page; /* with options.html */
    struct {
        int64_t frames, skipped, more; /* more: frames of ticks that opened none when recorded */
        int64_t plans_equal, plans_differ;
        int64_t was, was_missed, was_causes[TEC_CAUSES];
        json_t *first; /* the first difference; NULL: there is none */
    } counts;
    int64_t *was_us; /* [counts.was] what recorded frames took */
};

/* replay_sim_tell.c: a frame against the recorded one; with options.diff a line where they differ.
 * A moment that opens no frame here. What came of it all. */
enum tec_status tec_replay_sim_compare(struct tec_replay_sim *s,
                                       const struct tec_recorded_part *part,
                                       const struct tec_frame_record *now, struct tec_error *err);
enum tec_status tec_replay_sim_skip(struct tec_replay_sim *s,
                                    const struct tec_recorded_moment *moment,
                                    struct tec_error *err);
enum tec_status tec_replay_sim_tell(struct tec_replay_sim *s, struct tec_error *err);

#endif
