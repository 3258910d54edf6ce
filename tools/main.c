/* main.c - the program: everything is in tools/command.c. */
#include "tools/command.h"

int main(int argc, char **argv)
{
    return tec_command_main(argc, argv);
}
