/* shared.h - the options that several verbs take; part of command.c. */
#ifndef TEC_TOOLS_CLI_SHARED_H
#define TEC_TOOLS_CLI_SHARED_H

#include "tools/cli/command.h"

enum { TEC_MAX_GROUPS = 12 };

/* Fill groups with the verb's own options and the shared ones it takes; returns their number. */
int tec_shared_groups(struct tec_option_group groups[TEC_MAX_GROUPS],
                      const struct tec_command *command, void *own, struct tec_shared *shared);

/* Defaults before the parse, and what no table can check after it. */
void tec_shared_init(struct tec_shared *shared, const struct tec_command *command);
enum tec_status tec_shared_check(const struct tec_shared *shared, struct tec_error *err);

#endif
