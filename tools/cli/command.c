/* command.c - dispatches the program's verbs: it finds the verb, parses its options, runs it, and
 * turns its status into an exit code. */
#include "tools/cli/command.h"

#include "base/escape.h"
#include "base/json_text.h"
#include "base/nearest.h"
#include "tools/cli/crash.h"
#include "tools/cli/help.h"
#include "tools/cli/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct tec_verb verbs[] = {
#define COMMAND(name, text) {#name, text, &tec_command_##name, false},
#include "tools/cli/commands.def"
#undef COMMAND
};
enum { N_VERBS = sizeof verbs / sizeof verbs[0] };

const char tec_command_verbs[] =
#define COMMAND(name, text) #name "|"
#include "tools/cli/commands.def"
#undef COMMAND
    ;

struct tec_verbs tec_verbs(void)
{
    return (struct tec_verbs){verbs, N_VERBS};
}

int tec_exit_code(enum tec_status status)
{
    switch (status) {
    case TEC_OK:
        return TEC_EXIT_DONE;
    case TEC_INVALID:
        return TEC_EXIT_USAGE;
    case TEC_MALFORMED:
    case TEC_SHAPE:
    case TEC_NOT_FOUND:
    case TEC_UNSUPPORTED:
    case TEC_IO:
    case TEC_POLICY:
    case TEC_TIME:
        return TEC_EXIT_INPUT;
    case TEC_NO_MEMORY:
    case TEC_DEVICE:
        return TEC_EXIT_DEVICE;
    }
    return TEC_EXIT_BUG;
}

/* Occupy those of the three standard descriptors that the caller closed, so that a file opened
 * later cannot become stdout; they are opened in a mode in which a write still fails. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            int held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
            (void)held; /* open() takes the lowest free number: fd */
        }
}

/* Whether standard output is a pipe whose reader has gone. */
static bool reader_left(void)
{
    struct pollfd fd = {.fd = 1, .events = POLLOUT};
    return poll(&fd, 1, 0) > 0 && (fd.revents & POLLERR);
}

/* A reader that has gone away is no error; any other failed write is reported. */
static int finish_output(int code)
{
    bool lost = ferror(stdout) != 0;
    errno = 0;
    lost |= fflush(stdout) != 0;
    if (!lost || errno == EPIPE || reader_left() || code > TEC_EXIT_WRONG)
        return code;
    fprintf(stderr, "tectum: standard output: %s; results are lost\n",
            errno ? strerror(errno) : "cannot be written");
    return TEC_EXIT_INPUT;
}

static bool wants_help(int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static enum tec_status check_arguments(const struct tec_command *c, struct tec_invocation *call,
                                       struct tec_error *err)
{
    const struct tec_words *args = &call->args;
    int which;
    if (args->n < c->min_args)
        return tec_fail(err, TEC_INVALID, "%s is missing: tectum %s", c->args, c->usage);
    if (c->max_args >= 0 && args->n > c->max_args)
        return tec_fail(err, TEC_INVALID, "one argument too many: '%s'; tectum %s",
                        args->item[c->max_args], c->usage);
    if (c->words && args->n)
        return tec_options_word(&which, c->words, args->item[0], "", call->arena, err);
    return TEC_OK;
}

static bool takes(const struct tec_command *command, const char *name)
{
    struct tec_option_group groups[TEC_MAX_GROUPS];
    int n = tec_shared_groups(groups, command, NULL, NULL);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g].n; i++)
            if (strcmp(groups[g].options[i].name, name) == 0)
                return true;
    return false;
}

/* The verbs that take an option, "bench, run and serve". */
static void name_takers(const char *name, char *text, size_t room)
{
    int n = 0, left = 0;
    for (int i = 0; i < N_VERBS; i++)
        left += takes(verbs[i].command, name);
    for (int i = 0; i < N_VERBS && left; i++)
        if (takes(verbs[i].command, name)) {
            n += snprintf(text + n, room - (size_t)n, "%s%s", verbs[i].name,
                          left > 2    ? ", "
                          : left == 2 ? " and "
                                      : "");
            left--;
            if ((size_t)n >= room)
                return;
        }
}

static enum tec_status parse_and_run(const struct tec_verb *verb, struct tec_invocation *call,
                                     int argc, char *const *argv, struct tec_error *err)
{
    const struct tec_command *c = verb->command;
    struct tec_option_group groups[TEC_MAX_GROUPS];
    call->options = tec_arena_push(call->arena, 1, c->size ? c->size : 1, 16);
    if (!call->options)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the command line");
    tec_shared_init(&call->shared, c);
    int n = tec_shared_groups(groups, c, call->options, &call->shared);
    TEC_TRY(tec_options_parse(groups, n, argc, argv, &call->args, name_takers, call->arena, err));
    TEC_TRY(tec_shared_check(&call->shared, err));
    TEC_TRY(check_arguments(c, call, err));
    return c->run(call, err);
}

/* Where Hugging Face's programs keep what they downloaded, by the variables that they go by. */
static const char *hub_folder(struct tec_arena *arena)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            return tec_arena_printf(arena, "%s%s", value, places[i].below);
    }
    return NULL;
}

/* Where this user's programs keep what they can make again. */
static const char *cache_folder(struct tec_arena *arena)
{
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && own[0] == '/') /* others are to be ignored */
        return tec_arena_printf(arena, "%s/tectum", own);
    return home && *home ? tec_arena_printf(arena, "%s/.cache/tectum", home) : NULL;
}

static int run_verb(const struct tec_verb *verb, int argc, char *const *argv)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err = {0};
    if (wants_help(argc, argv)) {
        tec_help_verb(verb, stdout);
        return TEC_EXIT_DONE;
    }
    tec_arena_init(&arena, &heap);
    const char *plain = getenv("NO_COLOR");
    struct tec_invocation call = {.verb = verb->name,
                                  .hub = hub_folder(&arena),
                                  .cache = cache_folder(&arena),
                                  .heap = &heap,
                                  .arena = &arena,
                                  .out = stdout,
                                  .color = isatty(1) && !(plain && *plain),
                                  .progress = isatty(2) != 0};
    enum tec_status status = parse_and_run(verb, &call, argc, argv, &err);
    if (tec_json_refused() && status != TEC_NO_MEMORY)
        status = tec_fail(&err, TEC_NO_MEMORY, "no memory for a JSON value; results are not whole");
    if (status != TEC_OK) {
        fflush(stdout);
        tec_say(&call, "%s", err.message[0] ? err.message : tec_status_text(status));
    }
    int code = tec_exit_code(status);
    if (status == TEC_OK && call.wrong)
        code = TEC_EXIT_WRONG;
    tec_arena_finish(&arena);
    return code;
}

static int unknown_verb(const char *word)
{
    const char *names[N_VERBS];
    for (int i = 0; i < N_VERBS; i++)
        names[i] = verbs[i].name;
    const char *near = tec_nearest(word, names, N_VERBS);
    char shown[200];
    tec_escape(shown, sizeof shown, word);
    const char *what = word[0] == '-' ? "option" : "verb";
    if (near && word[0] != '-')
        fprintf(stderr, "tectum: unknown verb '%s'; did you mean '%s'?\n", shown, near);
    else
        fprintf(stderr, "tectum: unknown %s '%s'; tectum --help lists what there is\n", what,
                shown);
    return TEC_EXIT_USAGE;
}

static const struct tec_verb *find_verb(const char *name)
{
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int dispatch(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--version") == 0) {
        tec_help_version(stdout);
        return TEC_EXIT_DONE;
    }
    if (strcmp(word, "help") == 0 && argc > 2 && find_verb(argv[2])) {
        tec_help_verb(find_verb(argv[2]), stdout);
        return TEC_EXIT_DONE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        tec_help_program(verbs, N_VERBS, stdout);
        return TEC_EXIT_DONE;
    }
    const struct tec_verb *verb = find_verb(word);
    return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(word);
}

static void prepare(void)
{
    hold_standard_files();
    tec_crash_handlers();
    tec_json_watch();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int tec_command_main(int argc, char **argv)
{
    prepare();
    return finish_output(dispatch(argc, argv));
}

int tec_command_alone(const char *name, const char *summary, const struct tec_command *command,
                      int argc, char **argv)
{
    const struct tec_verb verb = {name, summary, command, true};
    prepare();
    return finish_output(run_verb(&verb, argc - 1, argv + 1));
}
