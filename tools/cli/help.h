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

void tec_help_program(const struct tec_verb *verbs, int n, FILE *out);
void tec_help_verb(const struct tec_verb *verb, FILE *out);

/* Version, devices, CPU tiers that run here. */
void tec_help_version(FILE *out);

#endif
