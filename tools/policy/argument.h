/* argument.h - strict reading of tables that a script gives to a C function.
 *
 * All functions run inside a protected call and raise; `table` is a stack index, `what` names the
 * table in messages. Fields are read raw. Texts live as long as the table. */
#ifndef TEC_TOOLS_POLICY_ARGUMENT_H
#define TEC_TOOLS_POLICY_ARGUMENT_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

/* Raise for a field that is none of the `n` names, with the nearest. Integer keys are refused. */
void tec_argument_check(lua_State *L, int table, const char *what, const char *const *names, int n);

/* The number in a field, `missing` when it is not there. NaN and infinity are numbers. */
double tec_argument_number(lua_State *L, int table, const char *name, double missing);

/* A whole number within low..high. */
int tec_argument_int(lua_State *L, int table, const char *name, int low, int high, int missing);

/* A whole number of microseconds; math.huge and what does not fit are INT64_MAX. */
int64_t tec_argument_us(lua_State *L, int table, const char *name, int64_t missing);

bool tec_argument_bool(lua_State *L, int table, const char *name, bool missing);
const char *tec_argument_text(lua_State *L, int table, const char *name, const char *missing);

/* Push the table in a field and return its length; -1 and nothing pushed when it is not there. */
int tec_argument_table(lua_State *L, int table, const char *name);

#endif
