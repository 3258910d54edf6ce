/* unpack.c - values of an evaluated description, each checked. */
#include "graph/model/unpack.h"

#include <string.h>

enum tec_status tec_unpack_fail(const char *where, const char *says, struct tec_error *err)
{
    static const char missing[] = "Object item not found: ", left[] = "left unpacked: ";
    const char *others = strstr(says, left);
    if (strncmp(says, missing, sizeof missing - 1) == 0)
        return tec_fail(err, TEC_MALFORMED, "%s: the field '%s' is missing", where,
                        says + sizeof missing - 1);
    if (others)
        return tec_fail(err, TEC_MALFORMED, "%s: no field here is named %s", where,
                        others + sizeof left - 1);
    return tec_fail(err, TEC_MALFORMED, "%s: a field is of another type: %s", where, says);
}

enum tec_status tec_parse_positive(int value, const char *where, const char *what,
                                   struct tec_error *err)
{
    if (value < 1 || value > TEC_PARSE_MAX)
        return tec_fail(err, TEC_MALFORMED, "%s: %s must be 1 .. %d, is %d", where, what,
                        TEC_PARSE_MAX, value);
    return TEC_OK;
}

enum tec_status tec_parse_activation(enum tec_activation *activation, const char *name,
                                     const char *where, struct tec_error *err)
{
    static const char *const names[] = {"gelu", "gelu_erf", "silu", "relu"};
    *activation = TEC_ACTIVATION_GELU;
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *activation = (enum tec_activation)i;
            return TEC_OK;
        }
    return !name ? TEC_OK
                 : tec_fail(err, TEC_MALFORMED,
                            "%s.activation: '%s' is not gelu, gelu_erf, silu or relu", where, name);
}
