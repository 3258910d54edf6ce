/* shared.c - the options that several verbs share, their checks, and the choice of the device that
 * they lead to. */
#include "tools/cli/shared.h"

#include "base/nearest.h"
#include "tools/api/choose_device.h"

#include <string.h>

#define AT(member) offsetof(struct tec_shared, member)
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

const char *const tec_size_names[3] = {"full", "small", "tiny"};

const char *tec_shared_size(const struct tec_shared *shared)
{
    return tec_size_names[shared->size > 0 ? shared->size : 0];
}

static const struct tec_option format[] = {
    {"format", 0, TEC_OPTION_WORD, "text|json", "how results are printed", AT(format), 0, 0},
};

static const struct tec_option format_github[] = {
    {"format", 0, TEC_OPTION_WORD, "text|json|github",
     "how results are printed; github: workflow commands", AT(format), 0, 0},
};

static const struct tec_option device[] = {
    {"device", 0, TEC_OPTION_TEXT, "cpu|cuda[:N]",
     "where it runs; a GPU, else or with --threads or --tier the CPU", AT(device), 0, 0},
    {"threads", 0, TEC_OPTION_INT, "N",
     "lanes of the CPU; without it one a processor, fewer for small launches", AT(threads), 1,
     1024},
    {"tier", 0, TEC_OPTION_TEXT, "NAME", "kernels of the CPU; the best of this machine", AT(tier),
     0, 0},
};

static const struct tec_option launches[] = {
    {"spin-us", 0, TEC_OPTION_INT, "N", "how long idle lanes spin before they sleep", AT(spin_us),
     0, 10000000},
    {"patience-ms", 0, TEC_OPTION_INT, "N", "a launch on a GPU that takes longer has failed; 30000",
     AT(patience_ms), 1, 86400000},
};

static const struct tec_option costed[] = {
    {"device", 0, TEC_OPTION_TEXT, "cpu|cuda[:N]", "the robot's; costs of another are told",
     AT(device), 0, 0},
    {"threads", 0, TEC_OPTION_INT, "N", "the robot's; costs of another number are told",
     AT(threads), 1, 1024},
    {"tier", 0, TEC_OPTION_TEXT, "NAME", "the robot's kernels; costs of others are told", AT(tier),
     0, 0},
};

static const struct tec_option model[] = {
    {"weights", 0, TEC_OPTION_TEXT, "DIR", "this checkpoint in place of the pipeline's",
     AT(weights), 0, 0},
    {"adapter", 0, TEC_OPTION_TEXT, "DIR", "a LoRA adapter (PEFT) to merge into the checkpoint",
     AT(adapter), 0, 0},
    {"random-weights", 0, TEC_OPTION_SEED, "SEED",
     "values drawn from this seed, no weights of a checkpoint", AT(random_weights), 0, 0},
    {"size", 0, TEC_OPTION_WORD, "full|small|tiny",
     "of a model with random weights; as a folder says, else full", AT(size), 0, 0},
    {"tokenizer", 0, TEC_OPTION_TEXT, "FILE", "this tokenizer in place of the checkpoint's",
     AT(tokenizer), 0, 0},
};

static const struct tec_option cache[] = {
    {"weights-cache", 0, TEC_OPTION_TEXT, "auto|DIR|off",
     "packed weights are kept in a file, which makes starts quick: beside the checkpoint, in DIR; "
     "a file that is there is used without this option",
     AT(weights_cache), 0, 0},
};

static const struct tec_option set[] = {
    {"set", 0, TEC_OPTION_LIST, "PATH=VALUE",
     "a field of the pipeline: nodes.act.steps=5; a list as JSON: '...reads=[\"a\", \"b\"]'",
     AT(set), 0, 0},
    {"embodiment", 0, TEC_OPTION_TEXT, "TAG",
     "the robot, of a checkpoint folder that knows several", AT(embodiment), 0, 0},
};

static const struct tec_option policy[] = {
    {"policy", 0, TEC_OPTION_TEXT, "NAME|FILE", "this policy in place of the pipeline's",
     AT(policy), 0, 0},
    {"param", 0, TEC_OPTION_LIST, "NAME=VALUE", "a parameter of the policy", AT(param), 0, 0},
};

static const struct tec_option costs[] = {
    {"costs", 0, TEC_OPTION_TEXT, "FILE", "what nodes cost, as `tectum profile -o` wrote it",
     AT(costs), 0, 0},
};

static const struct tec_option seed[] = {
    {"seed", 0, TEC_OPTION_SEED, "N", "of everything that is random", AT(seed), 0, 0},
};

static const struct tec_option every[] = {
    {"root", 0, TEC_OPTION_TEXT, "DIR", "the folder that holds pipelines/ and policies/", AT(root),
     0, 0},
    {"help", 'h', TEC_OPTION_FLAG, NULL, "this text", AT(help), 0, 0},
};

int tec_shared_groups(struct tec_option_group groups[TEC_MAX_GROUPS],
                      const struct tec_command *command, void *own, struct tec_shared *shared)
{
    int n = 0;
    groups[n++] = (struct tec_option_group){"Options", command->options, command->n_options, own};
    if (command->takes & TEC_TAKES_GITHUB)
        groups[n++] = (struct tec_option_group){"Output", format_github, 1, shared};
    else if (command->takes & TEC_TAKES_FORMAT)
        groups[n++] = (struct tec_option_group){"Output", format, 1, shared};
    if (command->takes & (TEC_TAKES_DEVICE | TEC_TAKES_PLANNED))
        groups[n++] = (struct tec_option_group){"Device", device, COUNT(device), shared};
    if (command->takes & TEC_TAKES_DEVICE)
        groups[n++] = (struct tec_option_group){"Launches", launches, COUNT(launches), shared};
    if (command->takes & TEC_TAKES_COSTED)
        groups[n++] = (struct tec_option_group){"Device", costed, COUNT(costed), shared};
    if (command->takes & TEC_TAKES_MODEL)
        groups[n++] = (struct tec_option_group){"Model", model, COUNT(model), shared};
    if (command->takes & TEC_TAKES_CACHE)
        groups[n++] = (struct tec_option_group){"Start", cache, COUNT(cache), shared};
    if (command->takes & TEC_TAKES_SET)
        groups[n++] = (struct tec_option_group){"Pipeline", set, COUNT(set), shared};
    if (command->takes & TEC_TAKES_POLICY)
        groups[n++] = (struct tec_option_group){"Policy", policy, COUNT(policy), shared};
    if (command->takes & TEC_TAKES_COSTS)
        groups[n++] = (struct tec_option_group){"Costs", costs, COUNT(costs), shared};
    if (command->takes & TEC_TAKES_SEED)
        groups[n++] = (struct tec_option_group){"Randomness", seed, COUNT(seed), shared};
    groups[n++] = (struct tec_option_group){"Always", every, COUNT(every), shared};
    return n;
}

void tec_shared_init(struct tec_shared *shared, const struct tec_command *command)
{
    *shared = (struct tec_shared){.format = (int)command->format, .size = -1, .spin_us = -1};
}

/* Check that every word is "NAME=VALUE" with both parts present. */
static enum tec_status check_pairs(const char *option, const struct tec_words *words,
                                   struct tec_error *err)
{
    for (int i = 0; i < words->n; i++) {
        const char *equals = strchr(words->item[i], '=');
        if (!equals || equals == words->item[i])
            return tec_fail(err, TEC_INVALID, "--%s: '%s' is not NAME=VALUE", option,
                            words->item[i]);
    }
    return TEC_OK;
}

enum tec_status tec_shared_check(const struct tec_shared *shared, struct tec_error *err)
{
    TEC_TRY(check_pairs("set", &shared->set, err));
    TEC_TRY(check_pairs("param", &shared->param, err));
    if (shared->weights && shared->random_weights.given)
        return tec_fail(err, TEC_INVALID, "--weights and --random-weights exclude each other");
    if (shared->adapter && shared->random_weights.given)
        return tec_fail(err, TEC_INVALID, "--adapter and --random-weights exclude each other");
    if (shared->size > 0 && !shared->random_weights.given)
        return tec_fail(err, TEC_INVALID, "--size %s: only with --random-weights SEED",
                        tec_shared_size(shared));
    return TEC_OK;
}

static bool is_tiles(const char *tier)
{
    return tier && strcmp(tier, "amx") == 0;
}

static enum tec_status find_tier(const char *name, enum tec_tier *tier, struct tec_error *err)
{
    const char *names[TEC_TIER_COUNT];
    /* The kernels of a tile unit are those of avx512, which takes it wherever it is there. */
    name = is_tiles(name) ? "avx512" : name;
    *tier = name ? tec_tier_find(name) : tec_tier_best();
    if (*tier != TEC_TIER_COUNT)
        return TEC_OK;
    for (int i = 0; i < TEC_TIER_COUNT; i++)
        names[i] = tec_tier_name((enum tec_tier)i);
    const char *near = tec_nearest(name, names, TEC_TIER_COUNT);
    if (near)
        return tec_fail(err, TEC_INVALID, "--tier: unknown tier '%s'; did you mean '%s'?", name,
                        near);
    return tec_fail(err, TEC_INVALID,
                    "--tier: unknown tier '%s'; tectum graph --list tiers shows what there is",
                    name);
}

enum tec_status tec_cli_device_named(const struct tec_invocation *call,
                                     struct tec_device_options *named, struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    *named = (struct tec_device_options){.threads = s->threads};
    if (s->device)
        TEC_TRY(tec_choose_device_named(named, s->device, err));
    return find_tier(s->tier, &named->tier, err);
}

enum tec_status tec_cli_device_choice(const struct tec_invocation *call,
                                      struct tec_device_options *choice, struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    *choice = (struct tec_device_options){
        .kind = "cpu", .threads = s->threads, .spin_us = s->spin_us, .patience_ms = s->patience_ms};
    TEC_TRY(find_tier(s->tier, &choice->tier, err));
    if (is_tiles(s->tier) && !tec_tier_has_tiles())
        return tec_fail(err, TEC_DEVICE,
                        "--tier amx: this CPU has no tile unit; the best here is %s",
                        tec_tier_name(tec_tier_best()));
    if (!tec_tier_runs_here(choice->tier))
        return tec_fail(err, TEC_DEVICE, "--tier %s: this CPU cannot run it; the best here is %s",
                        s->tier, tec_tier_name(tec_tier_best()));
    char note[200];
    if (!s->device && (s->tier || s->threads)) /* --tier and --threads select the CPU */
        return TEC_OK;
    return tec_choose_device(choice, s->device, note, err);
}

void tec_cli_device_note(const struct tec_invocation *call)
{
    char note[200];
    struct tec_device_options choice = {.kind = "cpu"};
    if (call->shared.device || call->shared.tier || call->shared.threads)
        return;
    if (tec_choose_device(&choice, NULL, note, NULL) == TEC_OK && note[0])
        tec_say(call, "%s", note);
}

const char *tec_cli_typed(const struct tec_invocation *call, const char *text)
{
    const struct tec_shared *s = &call->shared;
    if (text && s->random_weights.given)
        text = tec_arena_printf(call->arena, "%s --random-weights %llu --size %s", text,
                                (unsigned long long)s->random_weights.value, tec_shared_size(s));
    for (int i = 0; text && i < s->set.n; i++)
        text = tec_arena_printf(call->arena, "%s --set %s", text, s->set.item[i]);
    for (int i = 0; text && i < s->param.n; i++)
        text = tec_arena_printf(call->arena, "%s --param %s", text, s->param.item[i]);
    return text;
}
