/* ring_text.c - describes a ring in words: its stages and their bytes, and what each captured depth
 * means for a frame and for the age of an action. */
#include "tools/frames/ring_text.h"

#include "base/byte_text.h"
#include "graph/kv/stages.h"

static void print_depths(const struct tec_decl_resource *r, const struct tec_ints *depth, FILE *out)
{
    for (int i = 0; i < depth->n; i++) {
        int d = depth->item[i];
        if (d < 1 || d > r->stages)
            continue;
        int forwards = tec_stages_forwards(r->stages, d), age = tec_stages_frames(r->stages, d) - 1;
        fprintf(out, "  depth %d: %d forward%s a frame, an action comes from the observation ", d,
                forwards, forwards == 1 ? "" : "s");
        if (age)
            fprintf(out, "%d frame%s before\n", age, age == 1 ? "" : "s");
        else
            fputs("of its own frame\n", out);
    }
}

static void print_ring(const struct tec_pipeline *p, const struct tec_decl_node *node,
                       const struct tec_measured *m, FILE *out)
{
    char bytes[24];
    const struct tec_decl_resource *r = &p->resources[node->kv.index];
    fprintf(out, "  ring %s: %d stage%s of %d tokens", r->name, r->stages,
            r->stages == 1 ? "" : "s", r->tokens);
    if (m)
        fprintf(out, " (%s of keys and values each)",
                tec_byte_text(bytes, m->kv_token * r->tokens));
    if (p->frame.sessions > 1)
        fprintf(out, " for each of %d sessions", p->frame.sessions);
    fprintf(out, "; sequences %s; %s; a new instruction %s\n",
            r->shift == TEC_SHIFT_DEVICE_COPY ? "are copied on in each forward"
                                              : "keep their slots",
            r->pack == TEC_PACK_GATHER ? "attention reads a copy of all keys"
                                       : "attention reads keys where they are",
            r->on_change == TEC_CHANGE_FLUSH ? "empties it" : "leaves it as it is");
    print_depths(r, &p->capture.depth, out);
}

void tec_frame_ring_text(const struct tec_pipeline *p, const struct tec_measured *m, FILE *out)
{
    const struct tec_decl_node *node;
    for (int i = 0; (node = tec_pipeline_ring(p, i)); i++)
        print_ring(p, node, m, out);
}
