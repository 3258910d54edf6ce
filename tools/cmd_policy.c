/* cmd_policy.c - a policy before it touches a robot: unit tests and the gate. */
#include "tools/command.h"
#include "tools/policy/test.h"

#include "base/nearest.h"

#include <string.h>

/* --- policy test -------------------------------------------------------------------------- */

static enum tec_status run_tests(struct tec_invocation *call, struct tec_checks *all,
                                 struct tec_error *err)
{
    bool text = call->shared.format == TEC_FORMAT_TEXT;
    if (call->args.n < 2)
        return tec_fail(err, TEC_INVALID, "policy test: a test file is missing");
    for (int i = 1; i < call->args.n; i++) {
        struct tec_checks one = {.arena = call->arena};
        TEC_TRY(
            tec_policy_test(call->args.item[i], call->root, text ? &one : all, call->heap, err));
        if (!text)
            continue;
        tec_checks_print(&one, true, call->out);
        fprintf(call->out, "%s: %d checks, %d not ok\n", call->args.item[i], one.n, one.failed);
        all->n += one.n;
        all->failed += one.failed;
    }
    if (!text)
        return tec_checks_json(all, call->out, err);
    if (call->args.n > 2)
        fprintf(call->out, "%d checks, %d not ok\n", all->n, all->failed);
    return TEC_OK;
}

/* --- the verb ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum tec_status (*run)(struct tec_invocation *call, struct tec_checks *checks,
                           struct tec_error *err);
} actions[] = {{"test", run_tests}};

enum { N_ACTIONS = sizeof actions / sizeof actions[0] };

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const char *names[N_ACTIONS], *name = call->args.item[0];
    struct tec_checks checks = {.arena = call->arena};
    for (int i = 0; i < N_ACTIONS; i++) {
        names[i] = actions[i].name;
        if (strcmp(actions[i].name, name) != 0)
            continue;
        TEC_TRY(tec_need_root(call, err));
        enum tec_status status = actions[i].run(call, &checks, err);
        call->wrong = checks.failed > 0;
        return status;
    }
    const char *near = tec_nearest(name, names, N_ACTIONS);
    return tec_fail(err, TEC_INVALID, "policy: there is no '%s'%s%s%s", name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

const struct tec_command tec_command_policy = {
    .usage = "policy test FILE...",
    .about = "test: unit tests in Lua, each policy behind the real host (doc/policy-tests.md).\n"
             "json: {ok, checks:[{name, ok, detail}]}. Exit code 1 when a check is not ok.\n",
    .example = "  tectum policy test tests/policies/edf.lua\n",
    .takes = TEC_TAKES_FORMAT,
    .min_args = 1,
    .max_args = -1,
    .args = "what to do: test",
    .run = run,
};
