/* robot_fields.h - the names of all fields of a robot's description, by table. */
#ifndef TEC_GRAPH_TRANSFORM_ROBOT_FIELDS_H
#define TEC_GRAPH_TRANSFORM_ROBOT_FIELDS_H

#include <stddef.h>

enum tec_robot_table {
#define TABLE(id, place, text) TEC_ROBOT_TABLE_##id,
#define FIELD(name, type, standard, text)
#define END
#include "graph/transform/robot_fields.def"
#undef TABLE
#undef FIELD
#undef END
    TEC_N_ROBOT_TABLES
};

/* The fields that a table may have, *n of them, in the order of robot_fields.def. Static. */
const char *const *tec_robot_fields(enum tec_robot_table table, size_t *n);

#endif
