/* reference.c - generates the tables of doc/policies.md from hooks.def and views.def, the lists
 * that the code itself is made from. */
#include "policies/host/policy.h"

static const char calls[] =
    "### Hooks\n\n| Hook | Arguments | Meaning | Without it |\n|---|---|---|---|\n"
#define HOOK(name, args, meaning, without) \
    "| `" #name "` | `" args "` | " meaning " | " without " |\n"
#include "policies/hooks.def"
    "\n### Decisions\n\n| Call | Effect |\n|---|---|\n"
#define DECISION(name, args, effect) "| `D:" #name "(" args ")` | " effect " |\n"
#include "policies/hooks.def"
    ;

/* The text is in two parts, because compilers need not accept longer string literals. */
static const char views[] =
    "\n### F, the frame\n\n| Field | Meaning |\n|---|---|\n"
#define FRAME(name, member, kind, meaning) "| `F." #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.req[i], a request\n\n| Field | Meaning |\n|---|---|\n"
#define REQUEST(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### R and F.last, what a frame came to\n\n| Field | Meaning |\n|---|---|\n"
#define RESULT(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "| `node_us` | microseconds by name of node, 0 if it did not run |\n"
    "\n### F.seg[i], a segment of memory\n\n| Field | Meaning |\n|---|---|\n"
#define SEGMENT(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.gpu, the device\n\n| Field | Meaning |\n|---|---|\n"
#define DEVICE(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.kv(name), a resource\n\n| Field | Meaning |\n|---|---|\n"
#define POOL(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    ;

char *tec_policy_reference(struct tec_arena *arena)
{
    return tec_arena_printf(arena, "%s%s", calls, views);
}
