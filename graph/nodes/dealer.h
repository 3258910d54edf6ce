/* dealer.h - how frame tables are laid out: arrays dealt one after the other from a base; with no
 * base only measured. The same list deals host and device side. For the files of tables. */
#ifndef TEC_GRAPH_NODES_DEALER_H
#define TEC_GRAPH_NODES_DEALER_H

#include "graph/nodes/tables.h"

enum { TEC_DEAL_ALIGN = 64 };

struct tec_dealer {
    unsigned char *base;
    size_t used;
};

void *tec_deal(struct tec_dealer *d, size_t n, size_t size);
int *tec_deal_ints(struct tec_dealer *d, int n);
void tec_deal_rows(struct tec_dealer *d, struct tec_rows *rows, int max, int seqs, int spans);

/* Lists of a rotation with sections, for so many pictures. */
void tec_deal_turns(struct tec_dealer *d, struct tec_prefix_table *table,
                    const struct tec_model *model, int pictures);

#endif
