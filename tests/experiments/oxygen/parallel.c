/* parallel.c - the parallel baseline: two engines at work at once. */
#include "tests/experiments/oxygen/parallel.h"

#include "base/thread.h"
#include "tools/api/topology.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int all_lanes(const struct tec_oxygen *suite)
{
    int lanes = suite->call->shared.threads;
    return lanes ? lanes : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

enum tec_status tec_oxygen_pair_possible(const struct tec_oxygen *suite, bool *possible,
                                         struct tec_error *err)
{
    struct tec_device_options choice;
    TEC_TRY(tec_cli_device_choice(suite->call, &choice, err));
    *possible = strcmp(choice.kind, "cpu") != 0 || all_lanes(suite) > 1;
    return TEC_OK;
}

enum tec_status tec_oxygen_pair_open(struct tec_oxygen_pair *pair, struct tec_oxygen *suite, int S,
                                     enum tec_oxygen_input input, struct tec_error *err)
{
    /* The padded input has three pictures, which ALOHA's plan has room for. */
    static const char *const texts[] = {"pipelines/suite/text.lua",
                                        "pipelines/suite/text_padded.lua"};
    int lanes = all_lanes(suite), robot = input == TEC_OXYGEN_PADDED ? TEC_OXYGEN_ROBOTS - 1 : 0;
    lanes = lanes > 1 ? lanes / 2 : 1;
    const struct tec_oxygen_plan act = {tec_oxygen_robots[robot].file, S, lanes, 0};
    const struct tec_oxygen_plan talk = {texts[input], 0, lanes, 0};
    memset(pair, 0, sizeof *pair);
    pair->open = true;
    pair->input = input;
    enum tec_status status = tec_oxygen_open(&pair->act, suite, &act, err);
    if (status == TEC_OK)
        status = tec_oxygen_open(&pair->talk, suite, &talk, err);
    if (status == TEC_OK)
        status = tec_open_policy(
            &pair->policy, pair->talk.base.opened.pipeline, "shared_kv", pair->talk.base.call.root,
            &pair->talk.base.opened.engine->topology, NULL, 0, pair->talk.base.call.heap, err);
    if (status == TEC_OK)
        pair->planner = tec_policy_planner(pair->policy);
    else
        tec_oxygen_pair_close(pair);
    return status;
}

void tec_oxygen_pair_close(struct tec_oxygen_pair *pair)
{
    if (!pair->open)
        return;
    tec_oxygen_close(&pair->act);
    tec_oxygen_close(&pair->talk);
    tec_policy_close(pair->policy);
    memset(pair, 0, sizeof *pair);
}

enum tec_status tec_oxygen_pair_begin(struct tec_oxygen_pair *pair, struct tec_error *err)
{
    TEC_TRY(tec_oxygen_show(&pair->act, pair->input, err));
    TEC_TRY(tec_oxygen_show(&pair->talk, pair->input, err));
    tec_loop_restart(pair->act.base.opened.engine->loop);
    tec_loop_restart(pair->talk.base.opened.engine->loop);
    tec_loop_set_planner(pair->act.base.opened.engine->loop, &tec_default_planner);
    tec_loop_set_planner(pair->talk.base.opened.engine->loop, &pair->planner);
    return TEC_OK;
}

/* The actions of a frame, on a thread of their own. */
struct actions {
    struct tec_oxygen_engine *engine;
    int index;
    const struct tec_frame_record *record;
};

static void *run_actions(void *user)
{
    struct actions *a = user;
    struct tec_frame_input input = a->engine->input[a->index % TEC_BENCH_INPUTS];
    a->record = tec_suite_ask(a->engine->base.opened.engine->loop, &input, NULL);
    return NULL;
}

enum tec_status tec_oxygen_pair_frame(struct tec_oxygen_pair *pair, struct tec_oxygen_point *point,
                                      int index, bool warmup, struct tec_error *err)
{
    struct tec_ask ask = {.max_tokens = point->N};
    struct actions a = {&pair->act, index, NULL};
    struct tec_frame_input input = pair->talk.input[index % TEC_BENCH_INPUTS];
    pthread_t thread;
    if (!tec_thread_start(&thread, run_actions, &a))
        return tec_fail(err, TEC_NO_MEMORY, "no thread for the parallel baseline");
    const struct tec_frame_record *talk =
        tec_suite_ask(pair->talk.base.opened.engine->loop, &input, &ask);
    pthread_join(thread, NULL);
    int64_t act_ns = a.record->end_ns - a.record->start_ns;
    int64_t talk_ns = talk->end_ns - talk->start_ns;
    if (point->n < point->room)
        point->frame[point->n++] = (struct tec_oxygen_frame){
            .warmup = warmup,
            .n_new = 1,
            .tokens = talk->tokens,
            .rows = 1,
            .launches = 1,
            .ns = act_ns > talk_ns ? act_ns : talk_ns,
            .action_ns = a.record->actions[0].release_ns - a.record->start_ns,
            .act_ns = act_ns,
            .decode_ns = talk_ns};
    return TEC_OK;
}

int64_t tec_oxygen_pair_bytes(const struct tec_oxygen_pair *pair)
{
    return pair->act.base.opened.engine->plan->bytes.total +
           pair->talk.base.opened.engine->plan->bytes.total;
}
