/* round_int8.c - `round = "int8"` of a model: activations in 8 bits are read by products with 8-bit
 * weights alone. */
#include "graph/load/loader.h"
#include "graph/model/weights.h"

void tec_check_round_int8(struct tec_loader *ld)
{
    for (int i = 0; i < ld->pipeline->n_models; i++) {
        const struct tec_decl_model *m = &ld->pipeline->models[i];
        if (m->round != TEC_ROUND_INT8 || m->quantize == TEC_QUANTIZE_INT8)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E011, tec_where_field(ld, &ld->models[i], "round"),
            "'int8' is of products with 8-bit weights, which model '%.80s' does not have", m->name);
        tec_diagnostics_help(ld->d, d, "quantize = \"int8\" beside it, or another round");
    }
}
