/* offers.h - what a shell may offer behind an option, or as an argument: words, and files. */
#ifndef TEC_TOOLS_CLI_OFFERS_H
#define TEC_TOOLS_CLI_OFFERS_H

#include "tools/cli/command.h"

struct tec_offers {
    const char *words; /* "text|json"; NULL = none */
    const char *ends;  /* of the names of files: "lua|json"; "" = any file; NULL = no file */
    bool folders;      /* to be chosen themselves; where there are files folders lead to them */
};

/* What the value of an option may be, by the way its help spells it: "FILE.mcap", "DIR", "a|b". Of
 * policies `policies` ("edf|fill") and files; of tiers those that run here. A flag has no value. */
struct tec_offers tec_offers_of(const struct tec_option *option, const char *policies,
                                struct tec_arena *arena);

/* What the arguments of a verb may be, as its `offers` spells it: "POLICY|..." are `policies` too.
 */
struct tec_offers tec_offers_arguments(const struct tec_command *command, const char *policies,
                                       struct tec_arena *arena);

/* The names of the policies below the root, sorted, "edf|fill"; "" where there are none. */
const char *tec_offers_policies(const char *root, struct tec_arena *arena);

#endif
