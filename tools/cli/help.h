/* help.h - the texts of --help and --version; part of command.c. */
#ifndef TEC_TOOLS_CLI_HELP_H
#define TEC_TOOLS_CLI_HELP_H

#include "tools/cli/command.h"

/* One line of commands.def. */
struct tec_verb {
    const char *name, *text;
    const struct tec_command *command;
    bool alone; /* a program of its own */
};

/* Every verb, in the order of commands.def. */
struct tec_verbs {
    const struct tec_verb *verb;
    int n;
};
struct tec_verbs tec_verbs(void);

/* What the program's exit codes mean, in lines. */
extern const char tec_help_exit_codes[];

void tec_help_program(const struct tec_verb *verbs, int n, FILE *out);
void tec_help_verb(const struct tec_verb *verb, FILE *out);

/* Version, devices, CPU tiers that run here. */
void tec_help_version(FILE *out);

#endif
