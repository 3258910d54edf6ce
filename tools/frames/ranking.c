/* ranking.c - prints the texts that a score node has ranked, as JSON and as text. */
#include "tools/frames/ranking.h"

#include "base/json_text.h"
#include "tools/frames/sentence.h"

json_t *tec_ranking_json(const struct tec_frame_text *t)
{
    json_t *all = json_array();
    for (int i = 0; i < t->n_ranked; i++) {
        const struct tec_ranked *r = &t->ranked[i];
        json_t *likely = tec_json_number(r->likely);
        json_array_append_new(all, json_pack("{s:i, s:s, s:o}", "index", r->index, "text",
                                             t->list->item[r->index], "log_likelihood", likely));
    }
    return all;
}

void tec_ranking_print(FILE *out, const struct tec_frame_text *t)
{
    enum { SHOWN = 3 };
    for (int i = 0; i < t->n_ranked && i < SHOWN; i++) {
        tec_frame_print_sentence(out, t->list->item[t->ranked[i].index]);
        fprintf(out, " %.4g", t->ranked[i].likely);
    }
    if (t->n_ranked > SHOWN)
        fprintf(out, "  of %d", t->n_ranked);
}
