/* frame_timeline.c - draws what ran when in one frame, as a picture with a lane for the host and
 * for each node. */
#include "tools/picture/frame_timeline.h"

#include "tools/picture/timeline.h"

#include <string.h>

/* A deadline this many frame times away would squeeze everything else, so it is given in words. */
enum { FAR = 4 };

static bool is_decoder(const struct tec_frames *f, const char *node)
{
    for (int d = 0; d < f->n_decoders; d++)
        if (strcmp(f->decoders[d], node) == 0)
            return true;
    return false;
}

static double us(const struct tec_frame_record *r, int64_t ns)
{
    return (double)(ns - r->start_ns) / 1e3;
}

static const char *label_of(const struct tec_frames *f, const struct tec_launch_record *l,
                            struct tec_arena *arena)
{
    if (is_decoder(f, l->node))
        return tec_arena_printf(arena, "%s: %d row%s, %d step%s", l->node, l->rows,
                                l->rows == 1 ? "" : "s", l->k, l->k == 1 ? "" : "s");
    if (l->request >= 0)
        return tec_arena_printf(arena, "%s for request %lld", l->node, (long long)l->request);
    return l->node;
}

static int lane_of(const char **lanes, int *n, const char *node)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(lanes[i], node) == 0)
            return i;
    lanes[(*n)++] = node;
    return *n - 1;
}

static const char *subtitle_of(const struct tec_frames *f, const struct tec_frame_record *r,
                               struct tec_arena *arena)
{
    char slack[64] = "";
    const struct tec_action_record *a = &r->actions[0];
    if (a->deadline_ns >= 0 && a->release_ns >= 0)
        snprintf(slack, sizeof slack, "; actions left %.1f ms %s their deadline",
                 (double)(a->slack_us < 0 ? -a->slack_us : a->slack_us) / 1e3,
                 a->slack_us < 0 ? "after" : "before");
    return tec_arena_printf(arena, "frame %lld of %s, policy %s%s", (long long)r->frame,
                            f->opened.pipeline->name, r->policy, slack);
}

/* When each action node's chunk left, and its deadline where that is near; one alone needs no name.
 */
static int mark_actions(const struct tec_frames *f, const struct tec_frame_record *r,
                        struct tec_timeline_mark *marks, struct tec_arena *arena)
{
    int n = 0;
    for (int i = 0; i == 0 || i < r->n_actions; i++) {
        const struct tec_action_record *a = &r->actions[i];
        const char *leave = "actions leave", *due = "deadline";
        if (r->n_actions > 1) {
            leave = tec_arena_printf(arena, "%s leaves", f->actions[i]);
            due = tec_arena_printf(arena, "deadline of %s", f->actions[i]);
        }
        bool near =
            a->deadline_ns >= 0 && a->deadline_ns - r->start_ns < FAR * (r->end_ns - r->start_ns);
        if (a->release_ns >= 0)
            marks[n++] = (struct tec_timeline_mark){TEC_MARK_RELEASE, leave ? leave : f->actions[i],
                                                    us(r, a->release_ns)};
        if (near)
            marks[n++] = (struct tec_timeline_mark){TEC_MARK_DEADLINE, due ? due : f->actions[i],
                                                    us(r, a->deadline_ns)};
    }
    return n;
}

enum tec_status tec_timeline_of_frames(const char *path, const struct tec_frames *f,
                                       const struct tec_frame_record *r, const char *title,
                                       struct tec_error *err)
{
    struct tec_heap *heap = f->opened.call->heap;
    struct tec_timeline_span spans[TEC_MAX_LAUNCHES + 1];
    struct tec_timeline_mark marks[2 * TEC_MAX_ACTIONS];
    const char *lanes[TEC_MAX_NODES + 1] = {"host"};
    struct tec_arena arena;
    struct tec_timeline t = {.title = title, .spans = spans, .marks = marks, .lanes = lanes};
    int n_lanes = 1;
    tec_arena_init(&arena, heap);
    spans[t.n_spans++] = (struct tec_timeline_span){0, TEC_SPAN_HOST, "policy and plan", 0.0,
                                                    (double)r->planner_ns / 1e3};
    for (int i = 0; i < r->n_launches; i++) {
        const struct tec_launch_record *l = &r->launches[i];
        const char *label = label_of(f, l, &arena);
        bool soft = is_decoder(f, l->node) || l->request >= 0;
        spans[t.n_spans++] = (struct tec_timeline_span){
            lane_of(lanes, &n_lanes, l->node), soft ? TEC_SPAN_SOFT : TEC_SPAN_HARD,
            label ? label : l->node, us(r, l->start_ns), us(r, l->end_ns)};
    }
    t.n_marks = (size_t)mark_actions(f, r, marks, &arena);
    t.n_lanes = n_lanes;
    t.subtitle = subtitle_of(f, r, &arena);
    enum tec_status status = tec_timeline_write(&t, path, heap, err);
    tec_arena_finish(&arena);
    return status;
}
