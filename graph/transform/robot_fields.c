/* robot_fields.c - the tables of robot_fields.def as the parsers take them. */
#include "graph/transform/robot_fields.h"

/* clang-format off: a list for each table, which a macro opens and another one closes. */
#define TABLE(id, place, text) static const char *const names_of_##id[] = {
#define FIELD(name, type, standard, text) name,
#define END \
    }       \
    ;
#include "graph/transform/robot_fields.def"
#undef TABLE
#undef FIELD
#undef END
/* clang-format on */

const char *const *tec_robot_fields(enum tec_robot_table table, size_t *n)
{
    static const struct {
        const char *const *names;
        size_t n;
    } tables[] = {
#define TABLE(id, place, text) {names_of_##id, sizeof names_of_##id / sizeof names_of_##id[0]},
#define FIELD(name, type, standard, text)
#define END
#include "graph/transform/robot_fields.def"
#undef TABLE
#undef FIELD
#undef END
    };
    *n = tables[table].n;
    return tables[table].names;
}
