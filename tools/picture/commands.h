/* commands.h - the commands of each captured part, a line each. */
#ifndef TEC_TOOLS_PICTURE_COMMANDS_H
#define TEC_TOOLS_PICTURE_COMMANDS_H

#include "graph/run/engine/engine.h"

#include <stdio.h>

/* Print every part of every model of a planned engine: a line "part NAME commands N planned BYTES",
 * then a line a step: "|" where a barrier stands in front of it, the op and its label, tensors
 * read and written as name[rows x columns / row length]@offset in the part's activations (no
 * offset: it lives elsewhere), and what it computes and moves at full counts. Addresses are left
 * out, so equal plans print equal text. Pure but for the output. */
void tec_commands_print(const struct tec_engine *engine, FILE *out);

#endif
