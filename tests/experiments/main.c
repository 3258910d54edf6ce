/* main.c - the program `experiments`: what a paper measured, measured again on this machine.
 *
 *     experiments oxygen|actionflow|keep [options] -o DIR
 */
#include "tests/experiments/suite.h"
#include "tools/cli/command.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

struct experiment_options {
    const char *out;
    int frames, rounds;
    bool quick;
};

#define AT(member) offsetof(struct experiment_options, member)
static const struct tec_option options[] = {
    {"frames", 'n', TEC_OPTION_INT, "N", "measured frames of each point; the size's", AT(frames), 1,
     10000000},
    {"rounds", 0, TEC_OPTION_INT, "N", "turns of each point; the size's", AT(rounds), 1, 1000},
    {"quick", 0, TEC_OPTION_FLAG, NULL, "few points and frames, to see it work", AT(quick), 0, 0},
    {"out", 'o', TEC_OPTION_TEXT, "DIR", "tables, charts and JSON go there", AT(out), 0, 0},
};

static const struct paper {
    const char *name;
    tec_suite_main_fn *main;
    bool weights; /* runs a checkpoint, too */
} papers[] = {{"oxygen", tec_oxygen_main, false},
              {"actionflow", tec_actionflow_main, false},
              {"keep", tec_keep_main, true}};

/* The command line again, for a report that says how it was made. */
static const char *words(const struct tec_invocation *call, const struct experiment_options *o,
                         const char *name)
{
    const struct tec_shared *s = &call->shared;
    const char *text =
        s->weights
            ? tec_arena_printf(call->arena, "experiments %s --weights %s", name, s->weights)
            : tec_arena_printf(
                  call->arena, "experiments %s --random-weights %llu --size %s", name,
                  (unsigned long long)(s->random_weights.given ? s->random_weights.value : 1),
                  tec_shared_size(s));
    if (text && o->quick)
        text = tec_arena_printf(call->arena, "%s --quick", text);
    if (text && o->frames)
        text = tec_arena_printf(call->arena, "%s --frames %d", text, o->frames);
    for (int i = 0; text && i < s->set.n; i++)
        text = tec_arena_printf(call->arena, "%s --set %s", text, s->set.item[i]);
    if (text && s->threads)
        text = tec_arena_printf(call->arena, "%s --threads %d", text, s->threads);
    return text ? text : "";
}

static const struct paper *find(const char *name)
{
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++)
        if (strcmp(papers[i].name, name) == 0)
            return &papers[i];
    return NULL;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct experiment_options *o = call->options;
    const struct paper *paper = find(call->args.item[0]);
    if (!paper)
        return tec_fail(err, TEC_INVALID, "'%s' is none of oxygen, actionflow, keep",
                        call->args.item[0]);
    if (call->shared.weights && !paper->weights)
        return tec_fail(err, TEC_INVALID, "%s takes no --weights: its models are the paper's",
                        paper->name);
    if (!o->out)
        return tec_fail(err, TEC_INVALID, "--out DIR is missing");
    const struct tec_suite_options what = {.quick = o->quick,
                                           .frames = o->frames,
                                           .rounds = o->rounds,
                                           .dir = o->out,
                                           .command = words(call, o, paper->name)};
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST)
        return tec_fail(err, TEC_IO, "%s: %s", o->out, strerror(errno));
    return paper->main(call, &what, err);
}

static const struct tec_command command = {
    .usage = "experiments oxygen|actionflow|keep [options] -o DIR",
    .about = "The experiments of a paper: tables, charts and JSON. What each measures is in\n"
             "doc/benchmarks-oxygen.md, doc/benchmarks-actionflow.md and doc/benchmarks-keep.md.\n",
    .example =
        "  experiments oxygen --random-weights 1 --size small --quick -o DIR\n"
        "  experiments keep --random-weights 1 --size full --set model.arch=qwen2_1b5 -o DIR\n",
    .takes = TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET | TEC_TAKES_COSTS | TEC_TAKES_SEED,
    .format = TEC_FORMAT_TEXT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct experiment_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a paper: oxygen, actionflow or keep",
    .run = run,
};

int main(int argc, char **argv)
{
    return tec_command_alone("experiments", "what a paper measured, measured again", &command, argc,
                             argv);
}
