/* view_fields.h - views.def as a table: where each field that policies see lies in its C structure.
 */
#ifndef TEC_POLICIES_HOST_VIEW_FIELDS_H
#define TEC_POLICIES_HOST_VIEW_FIELDS_H

#include <stddef.h>

enum tec_view_kind {
    TEC_VIEW_INT,
    TEC_VIEW_I64,
    TEC_VIEW_UNTIL, /* int64_t, INT64_MAX shown as math.huge: never */
    TEC_VIEW_NUM,
    TEC_VIEW_BOOL,
    TEC_VIEW_NODE, /* int: index of a node, shown as its name */
    TEC_VIEW_CAUSE /* enum tec_cause, shown as its name */
};

struct tec_view_field {
    const char *name;
    size_t offset;
    enum tec_view_kind kind;
};

/* The fields of each list in turn. */
enum tec_view_list {
#define FRAME(name, member, kind, meaning) +1
    TEC_N_FRAME = 0
#include "policies/views.def"
    ,
#define REQUEST(name, member, kind, meaning) +1
    TEC_N_REQUEST = 0
#include "policies/views.def"
    ,
#define RESULT(name, member, kind, meaning) +1
    TEC_N_RESULT = 0
#include "policies/views.def"
    ,
#define POOL(name, member, kind, meaning) +1
    TEC_N_POOL = 0
#include "policies/views.def"
    ,
#define SEGMENT(name, member, kind, meaning) +1
    TEC_N_SEGMENT = 0
#include "policies/views.def"
    ,
#define DEVICE(name, member, kind, meaning) +1
    TEC_N_DEVICE = 0
#include "policies/views.def"
    ,
    TEC_REQUEST_AT = TEC_N_FRAME,
    TEC_RESULT_AT = TEC_REQUEST_AT + TEC_N_REQUEST,
    TEC_POOL_AT = TEC_RESULT_AT + TEC_N_RESULT,
    TEC_SEGMENT_AT = TEC_POOL_AT + TEC_N_POOL,
    TEC_DEVICE_AT = TEC_SEGMENT_AT + TEC_N_SEGMENT,
    TEC_N_FIELDS = TEC_DEVICE_AT + TEC_N_DEVICE
};

extern const struct tec_view_field tec_host_fields[TEC_N_FIELDS];

#endif
