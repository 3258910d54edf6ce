/* command.h - the verbs of the program: what one declares, what it is given, how it ends.
 *
 * A verb is one file tools/cli/cmd_<name>.c with one `const struct tec_command`, and one line in
 * commands.def. It prints results to stdout, everything else to stderr, and returns a status; what
 * exit code that is, is decided here. */
#ifndef TEC_TOOLS_CLI_COMMAND_H
#define TEC_TOOLS_CLI_COMMAND_H

#include "base/arena.h"
#include "kernels/device.h"
#include "tools/cli/options.h"

#include <stdbool.h>
#include <stdio.h>

/* What the process ends with. */
enum tec_exit {
    TEC_EXIT_DONE = 0,
    TEC_EXIT_WRONG = 1, /* the thing asked about is wrong */
    TEC_EXIT_USAGE = 2,
    TEC_EXIT_INPUT = 3,  /* an input cannot be read or is malformed */
    TEC_EXIT_DEVICE = 4, /* device or memory does not suffice */
    TEC_EXIT_BUG = 5
};

/* The exit code of a failure: TEC_INVALID is usage, TEC_NO_MEMORY and TEC_DEVICE are 4, what comes
 * of files is 3. */
int tec_exit_code(enum tec_status status);

/* Groups of shared options that a verb takes. */
enum tec_takes {
    TEC_TAKES_FORMAT = 1,    /* --format */
    TEC_TAKES_DEVICE = 2,    /* --device, --threads, --tier, --spin-us, --patience-ms */
    TEC_TAKES_MODEL = 4,     /* --weights, --adapter, --random-weights, --size, --tokenizer */
    TEC_TAKES_SET = 8,       /* --set */
    TEC_TAKES_POLICY = 16,   /* --policy, --param */
    TEC_TAKES_SEED = 32,     /* --seed */
    TEC_TAKES_GITHUB = 64,   /* --format, with github */
    TEC_TAKES_COSTS = 128,   /* --costs */
    TEC_TAKES_CACHE = 256,   /* --weights-cache */
    TEC_TAKES_COSTED = 512,  /* --device, --threads, --tier of a robot that is not here */
    TEC_TAKES_PLANNED = 1024 /* the same, of what is planned and not launched */
};

enum tec_format { TEC_FORMAT_TEXT, TEC_FORMAT_JSON, TEC_FORMAT_GITHUB };

/* Values of the shared options; what is not given is 0, NULL or the default said here. */
struct tec_shared {
    int format;         /* enum tec_format; see struct tec_command.format */
    const char *device; /* NULL: what is best here */
    int threads;        /* 0 = as many as there are processors */
    int spin_us;        /* -1 = the device's default */
    int patience_ms;    /* 0 = the device's default */
    const char *tier;   /* NULL = the best of this machine */
    const char *weights, *adapter;
    struct tec_seed random_weights;
    int size; /* tec_size_names[size]; -1: not given */
    const char *tokenizer;
    const char *weights_cache; /* "off", "auto" or a folder; NULL: files that are there are used */
    struct tec_words set, param;
    const char *embodiment; /* of a checkpoint folder that knows several robots */
    const char *policy;
    const char *costs; /* file that `profile` wrote; see tec_profile_costs_open */
    struct tec_seed seed;
    const char *root;
    bool help;
};

/* "full", "small", "tiny": the words of --size; the first is the default. */
extern const char *const tec_size_names[3];
const char *tec_shared_size(const struct tec_shared *shared); /* the word that holds */

/* One call of a verb. */
struct tec_invocation {
    const char *verb;
    struct tec_shared shared;
    void *options; /* the verb's own struct, zeroed before the parse */
    struct tec_words args;
    const char *root;      /* folder of pipelines/ and policies/, or NULL: see tec_cli_need_root */
    const char *hub;       /* the user's cache of Hugging Face's hub, or NULL */
    const char *cache;     /* the user's folder for caches of this program, or NULL */
    const char *shown;     /* the pipeline's name in messages, where its file is a copy, or NULL */
    struct tec_heap *heap; /* counts everything */
    struct tec_arena *arena; /* lives as long as the call */
    FILE *out;               /* results: stdout */
    bool color;              /* for `out` */
    bool progress;           /* stderr is a terminal */
    bool warns; /* set by the verb: pipelines that run say on stderr what `check` warns of */
    bool wrong; /* set by the verb: it did its work, and what was asked about is wrong */
};

struct tec_command {
    const char *usage;      /* "check [options] FILE..." */
    const char *about;      /* lines of help after the summary, or NULL */
    const char *example;    /* lines, each "tectum ..." with a comment where needed */
    unsigned takes;         /* enum tec_takes */
    enum tec_format format; /* when --format is not given */
    const struct tec_option *options;
    int n_options;
    size_t size;            /* of its struct; 0 = no options of its own */
    int min_args, max_args; /* max -1 = any number */
    const char *args;       /* what is missing when there are too few: "a pipeline file" */
    const char *offers;     /* what a shell offers as arguments, spelled as the value of an option:
                             * "PIPELINE|FILE.mcap", "DIR", "FILE"; NULL = nothing */
    const char *words;      /* "a|b|c": the first argument is one of these; NULL = anything */
    enum tec_status (*run)(struct tec_invocation *call, struct tec_error *err);
};

#define COMMAND(name, text) extern const struct tec_command tec_command_##name;
#include "tools/cli/commands.def"
#undef COMMAND

/* The verbs as `words`, with a bar behind the last. */
extern const char tec_command_verbs[];

/* Parse, dispatch, print the failure, flush: the body of main. */
int tec_command_main(int argc, char **argv);

/* The same for a program that is one command by itself: `argv` are its options and arguments. */
int tec_command_alone(const char *name, const char *summary, const struct tec_command *command,
                      int argc, char **argv);

/* Find the folder of the shipped files when it is not known yet. */
enum tec_status tec_cli_need_root(struct tec_invocation *call, struct tec_error *err);

/* The device that the shared options ask for. TEC_DEVICE when there is none here; TEC_INVALID for a
 * tier nobody knows, with the nearest. */
enum tec_status tec_cli_device_choice(const struct tec_invocation *call,
                                      struct tec_device_options *choice, struct tec_error *err);

/* What --device, --threads and --tier name, whether it is here or not: kind is NULL where no device
 * is given, the tier the best here without one. TEC_INVALID for a word that names none, with the
 * nearest. */
enum tec_status tec_cli_device_named(const struct tec_invocation *call,
                                     struct tec_device_options *named, struct tec_error *err);

/* `text`, the beginning of this call as it could be typed again, with its random weights, --set and
 * --param. NULL, or no memory: NULL. */
const char *tec_cli_typed(const struct tec_invocation *call, const char *text);

/* Say in one line why it is the CPU, where nobody asked for it and the build knows other devices.
 */
void tec_cli_device_note(const struct tec_invocation *call);

/* One line on stderr, "tectum check: <message>". */
void tec_say(const struct tec_invocation *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
