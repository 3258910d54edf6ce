/* cmd_policy.c - a policy before it touches a robot: unit tests and the gate; and on a running one.
 */
#include "tools/cli/command.h"
#include "tools/cli/expect.h"
#include "tools/policy/gate.h"
#include "tools/policy/live.h"
#include "tools/policy/test.h"

#include <stddef.h>
#include <string.h>

enum { FRAMES = 2000, PATIENCE = 32 };

struct policy_options {
    const char *pipeline, *costs;
    int frames, patience, clock, most_snapped;
    struct tec_live_options live;
};

#define AT(member) offsetof(struct policy_options, member)
static const struct tec_option options[] = {
    {"pipeline", 0, TEC_OPTION_TEXT, "FILE", "check: the pipeline it is to run in", AT(pipeline), 0,
     0},
    {"costs", 0, TEC_OPTION_TEXT, "FILE.costs", "check: what launches take, of `tectum profile`",
     AT(costs), 0, 0},
    {"frames", 'n', TEC_OPTION_INT, "N", "check: frames of each run; 2000", AT(frames), 100,
     1000000},
    {"patience", 0, TEC_OPTION_INT, "N", "check: frames a request may wait for a token; 32",
     AT(patience), 1, 1000000},
    {"most-snapped", 0, TEC_OPTION_INT, "PERCENT",
     "check: rows whose k may be moved to a captured point; 100", AT(most_snapped), 1, 100},
    {"clock", 0, TEC_OPTION_WORD, "paced|saturated",
     "check: a frame each period, or one after the other", AT(clock), 0, 0},
    {"control", 0, TEC_OPTION_TEXT, "PATH", "the socket of a robot: serve --control, run --control",
     AT(live.control), 0, 0},
    {"wait", 0, TEC_OPTION_FLAG, NULL, "load: until the policy is adopted or rejected",
     AT(live.wait), 0, 0},
    {"timeout-s", 0, TEC_OPTION_INT, "N", "load --wait: at most so long; 60", AT(live.timeout_s), 1,
     86400},
    {"out", 'o', TEC_OPTION_TEXT, "FILE.jsonl", "dump: the file", AT(live.out), 0, 0},
};

static bool any_live(const struct tec_live_options *o)
{
    return o->control || o->wait || o->timeout_s || o->out;
}

static bool any_check(const struct policy_options *o, const struct tec_shared *s)
{
    return s->weights || s->adapter || s->embodiment || s->tokenizer || s->device || s->tier ||
           s->threads || s->random_weights.given || s->size >= 0 || o->pipeline || o->costs ||
           o->frames || o->patience || o->clock || o->most_snapped;
}

/* --- policy test -------------------------------------------------------------------------- */

static enum tec_status run_tests(struct tec_invocation *call, struct tec_checks *all,
                                 struct tec_error *err)
{
    const struct policy_options *o = call->options;
    const struct tec_shared *s = &call->shared;
    bool text = s->format == TEC_FORMAT_TEXT;
    if (any_check(o, s) || any_live(&o->live) || s->set.n || s->policy || s->param.n ||
        s->seed.given)
        return tec_fail(err, TEC_INVALID,
                        "policy test takes files and --format: the rest stands in the files");
    if (call->args.n < 2)
        return tec_fail(err, TEC_INVALID, "policy test: a test file is missing");
    for (int i = 1; i < call->args.n; i++) {
        const char *path = call->args.item[i];
        struct tec_checks one = {.arena = call->arena};
        if (tec_path_kind(path) == TEC_PATH_POLICY)
            return tec_expect(path,
                              "a file of tests, which names its policy: tectum.test { policy = "
                              "... }; `tectum policy check` judges a policy",
                              err);
        TEC_TRY(tec_policies_test(path, call->root, text ? &one : all, call->heap, err));
        if (!text)
            continue;
        tec_checks_print(&one, true, call->out);
        fprintf(call->out, "%s: %d checks, %d not ok\n", path, one.n, one.failed);
        all->n += one.n;
        all->failed += one.failed;
    }
    if (!text)
        return tec_checks_json(all, call->out, err);
    if (call->args.n > 2)
        fprintf(call->out, "%d checks, %d not ok\n", all->n, all->failed);
    return TEC_OK;
}

/* --- policy check ------------------------------------------------------------------------- */

static enum tec_status run_gate(struct tec_invocation *call, struct tec_checks *checks,
                                struct tec_error *err)
{
    const struct policy_options *o = call->options;
    struct tec_gate_options gate = {.policy = call->args.n > 1 ? call->args.item[1] : NULL,
                                    .pipeline = o->pipeline,
                                    .costs = o->costs,
                                    .frames = o->frames ? o->frames : FRAMES,
                                    .patience = o->patience ? o->patience : PATIENCE,
                                    .most_snapped = o->most_snapped ? o->most_snapped : 100,
                                    .saturated = o->clock == 1,
                                    .seed = call->shared.seed.given ? call->shared.seed.value : 1};
    int policies = call->args.n - 1 + (call->shared.policy != NULL);
    if (policies > 1)
        return tec_fail(err, TEC_INVALID, "policy check takes one policy, there are %d", policies);
    if (any_live(&o->live))
        return tec_fail(
            err, TEC_INVALID,
            "policy check runs beside no robot: it takes no --control, --wait or --out");
    if (!gate.pipeline || !gate.costs)
        return tec_fail(err, TEC_INVALID,
                        "policy check needs --pipeline FILE and --costs FILE.costs, which `tectum "
                        "profile FILE -o FILE.costs` measures");
    TEC_TRY(tec_expect_pipeline(gate.pipeline, err));
    if (gate.policy && tec_path_kind(gate.policy) == TEC_PATH_PIPELINE)
        return tec_expect(gate.policy, "a policy", err);
    TEC_TRY(tec_policies_gate(call, &gate, checks, err));
    if (call->shared.format != TEC_FORMAT_TEXT)
        return tec_checks_json(checks, call->out, err);
    tec_checks_print(checks, false, call->out);
    fprintf(call->out, "%d checks, %d not ok\n", checks->n, checks->failed);
    return TEC_OK;
}

/* --- policy load, fallback and the like --------------------------------------------------- */

static enum tec_status run_live(struct tec_invocation *call, struct tec_error *err)
{
    const struct policy_options *o = call->options;
    if (any_check(o, &call->shared))
        return tec_fail(err, TEC_INVALID, "policy %s: only policy check takes --pipeline and such",
                        call->args.item[0]);
    return tec_policies_live(call, &o->live, err);
}

/* --- the verb ----------------------------------------------------------------------------- */

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const char *action = call->args.item[0];
    struct tec_checks checks = {.arena = call->arena};
    bool tests = strcmp(action, "test") == 0;
    if (!tests && strcmp(action, "check") != 0)
        return run_live(call, err);
    TEC_TRY(tec_cli_need_root(call, err));
    enum tec_status status = tests ? run_tests(call, &checks, err) : run_gate(call, &checks, err);
    call->wrong |= checks.failed > 0;
    return status;
}

const struct tec_command tec_command_policy = {
    .usage = "policy check|test|load|fallback|... [options] [FILE...]",
    .about =
        "check: is the policy fit for this pipeline on this robot? It plans on a virtual clock\n"
        "with the robot's costs: budget, allocation, determinism, starvation, deadlines, lattice,\n"
        "chaos, migrate. test: unit tests in Lua, each policy behind the real host. Both are "
        "described in\n"
        "doc/policy-tests.md; json: {ok, checks:[{name, ok, detail}]}. Exit code 1 when a check "
        "is\n"
        "not ok.\n"
        "With --control PATH a running robot is told: load (a policy, on trial first), fallback,\n"
        "reinstate, rollback, drop, set NAME=VALUE, status, dump; doc/policies.md describes them.\n"
        "reset ends a server's stop (doc/deadlines.md).\n"
        "load --wait ends with exit code 1 when the policy was rejected or is gone again.\n",
    .example = "  tectum policy check mine.lua --pipeline robot.lua --costs robot.costs\n"
               "  tectum policy test tests/policies/edf.lua\n"
               "  tectum policy load mine.lua --control /run/user/1000/robot --wait\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_COSTED | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct policy_options),
    .min_args = 1,
    .max_args = -1,
    .args = "what to do: check, test, load, fallback, ...",
    .offers = "POLICY|FILE.lua",
    .words = "check|test|load|fallback|reinstate|rollback|drop|set|status|reset|dump",
    .run = run,
};
