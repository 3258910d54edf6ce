/* grid.c - the cells of ActionFlow's figure 5. */
#include "tests/experiments/actionflow/actionflow.h"

const char *const tec_actionflow_variants[TEC_ACTIONFLOW_VARIANTS] = {
    "sequential", "unpacked", "naive", "gather", "device_copy", "rotate"};
const int tec_actionflow_stages[TEC_ACTIONFLOW_STAGES] = {1, 4, 7, 16, 24, 32};
const int tec_actionflow_texts[TEC_ACTIONFLOW_TEXTS] = {19, 34, 64};

/* The paper's two ends for a full model, which runs for long; the shortest sweep to see it work. */
static bool taken(const struct tec_actionflow *s, int stages, int text)
{
    if (s->full && !s->quick)
        return (stages == 7 || stages == 32) && text == 34;
    if (s->quick)
        return s->full ? stages == 7 && text == 34 : stages <= 7 && stages != 1 && text != 34;
    return true;
}

void tec_actionflow_grid(struct tec_actionflow *s)
{
    s->n_cells = 0;
    s->by_call = 0;
    for (int k = 0; k < TEC_ACTIONFLOW_STAGES; k++)
        for (int t = 0; t < TEC_ACTIONFLOW_TEXTS; t++) {
            int stages = tec_actionflow_stages[k], text = tec_actionflow_texts[t];
            if (!taken(s, stages, text))
                continue;
            if (stages == 7 && (text == 34 || s->quick))
                s->by_call = s->n_cells;
            s->cells[s->n_cells++] = (struct tec_actionflow_cell){.stages = stages, .text = text};
        }
}

const struct tec_actionflow_cell *tec_actionflow_find(const struct tec_actionflow *s, int stages,
                                                      int text)
{
    for (int i = 0; i < s->n_cells; i++)
        if (s->cells[i].stages == stages && s->cells[i].text == text)
            return &s->cells[i];
    return NULL;
}
