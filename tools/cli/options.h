/* options.h - a small strict parser of command lines: tables of options in, members of structs out.
 *
 * Options may stand anywhere between the arguments; "--" ends them. A value follows as the next
 * word or after "=". Only options that may repeat can be given twice. Every failure is TEC_INVALID
 * with one line that names the option, what was given and what is allowed. */
#ifndef TEC_TOOLS_CLI_OPTIONS_H
#define TEC_TOOLS_CLI_OPTIONS_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tec_option_type {
    TEC_OPTION_FLAG,   /* bool */
    TEC_OPTION_TEXT,   /* const char *, as given */
    TEC_OPTION_WORD,   /* int: index into the words of `value` ("text|json") */
    TEC_OPTION_INT,    /* int within low..high */
    TEC_OPTION_SEED,   /* struct tec_seed */
    TEC_OPTION_NUMBER, /* double within low..high */
    TEC_OPTION_LIST    /* struct tec_words: may be given again */
};

/* A seed, and whether it was given. */
struct tec_seed {
    bool given;
    uint64_t value;
};

/* Words in the order they were given; owned by the arena of the parse. */
struct tec_words {
    int n;
    const char **item;
};

struct tec_option {
    const char *name;          /* without the dashes */
    char letter;               /* -T; 0 = none */
    enum tec_option_type type; /* of the member at `offset` */
    const char *value; /* what follows it, for the help: "N", "text|json"; NULL for a flag */
    const char *help;  /* a phrase */
    size_t offset;     /* into the struct of its group */
    double low, high;  /* INT and NUMBER */
};

/* Options that store into one struct. */
struct tec_option_group {
    const char *title; /* of the help */
    const struct tec_option *options;
    int n;
    void *into;
};

/* Writes who takes the option of that name, "bench, run and serve"; nothing where nobody does. */
typedef void tec_options_others(const char *name, char *text, size_t room);

/* Parse argv[0 .. argc - 1] (without the program and the verb). What is no option goes to `args`.
 * The message about an option that is in no group says who else takes it, if `others` (may be NULL)
 * knows. TEC_INVALID for anything wrong; TEC_NO_MEMORY. */
enum tec_status tec_options_parse(const struct tec_option_group *groups, int n_groups, int argc,
                                  char *const *argv, struct tec_words *args,
                                  tec_options_others *others, struct tec_arena *arena,
                                  struct tec_error *err);

/* The index of `word` in the list "a|b|c". TEC_INVALID for one that is not there, with the nearest;
 * the message begins with `what`, as "--format: ". */
enum tec_status tec_options_word(int *index, const char *words, const char *word, const char *what,
                                 struct tec_arena *arena, struct tec_error *err);

/* The table as aligned lines of help. */
void tec_options_help(const struct tec_option_group *groups, int n_groups, FILE *out);

#endif
