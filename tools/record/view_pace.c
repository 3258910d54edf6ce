/* view_pace.c - when a running robot is shown again to those who look. */
#include "tools/record/view_own.h"

static void tick(lws_sorted_usec_list_t *list)
{
    struct tec_view *v = lws_container_of(list, struct tec_view, tick);
    v->ticks = false;
    if (tec_foxglove_looked_at(v->foxglove))
        tec_foxglove_tick(v->foxglove);
    tec_view_keep_pace(v);
}

void tec_view_keep_pace(struct tec_view *v)
{
    if (v->ticks || !tec_foxglove_looked_at(v->foxglove))
        return;
    v->ticks = true;
    lws_sul_schedule(v->context, 0, &v->tick, tick, TEC_FOXGLOVE_TICK_US);
}
