/* client_reply.c - fuzz target: any bytes as a server's reply to a robot. What is accepted has
 * finite actions that fit. */
#include "tools/client/message.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { ROWS = 32, COLUMNS = 8 };
    static double actions[ROWS * COLUMNS];
    struct tec_client_reply reply;
    struct tec_error err = {.status = TEC_OK};
    enum tec_status status =
        tec_client_read_reply(&reply, actions, ROWS, COLUMNS, data, size, &err);
    if (status != TEC_OK && (err.status != status || !err.message[0]))
        abort();
    if (status == TEC_OK && (reply.rows > ROWS || reply.columns > COLUMNS))
        abort();
    for (int i = 0; status == TEC_OK && i < reply.rows * reply.columns; i++)
        if (!isfinite(actions[i]))
            abort();
    return 0;
}
