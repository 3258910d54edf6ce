/* view_fields.c - views.def as a table of C offsets: one entry for each field that policies see. */
#include "policies/host/view_fields.h"
#include "graph/run/launch/planner.h"

const struct tec_view_field tec_host_fields[TEC_N_FIELDS] = {
#define FRAME(name, member, kind, meaning) \
    {#name, offsetof(struct tec_frame_view, member), TEC_VIEW_##kind},
#include "policies/views.def"
#define REQUEST(name, member, kind, meaning) \
    {#name, offsetof(struct tec_request_view, member), TEC_VIEW_##kind},
#include "policies/views.def"
#define RESULT(name, member, kind, meaning) \
    {#name, offsetof(struct tec_frame_result, member), TEC_VIEW_##kind},
#include "policies/views.def"
#define POOL(name, member, kind, meaning) \
    {#name, offsetof(struct tec_kv_view, member), TEC_VIEW_##kind},
#include "policies/views.def"
#define SEGMENT(name, member, kind, meaning) \
    {#name, offsetof(struct tec_segment_view, member), TEC_VIEW_##kind},
#include "policies/views.def"
#define DEVICE(name, member, kind, meaning) \
    {#name, offsetof(struct tec_device_view, member), TEC_VIEW_##kind},
#include "policies/views.def"
};
