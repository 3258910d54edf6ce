/* crash.h - a fault of the program itself ends it with a line and exit code 5, never by a signal.
 */
#ifndef TEC_TOOLS_CLI_CRASH_H
#define TEC_TOOLS_CLI_CRASH_H

/* Install handlers for the signals of a fault, on a stack of their own. Does nothing under a
 * sanitizer, which reports more. */
void tec_crash_handlers(void);

#endif
