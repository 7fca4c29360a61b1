/* When the things that every machine has (rules/machine) happened to this one. The tables know
 * three days: of the installation, of the kernel's, and of the last upgrade; a world's clock starts
 * much later, so they are moved. */
#pragma once

#include <stdint.h>

#include "model/machine.h"

/* A time of such a day as this machine has it; any other time stays. Seconds since 1970. */
int64_t aq_veil_moved(const aq_machine *m, int64_t at);
