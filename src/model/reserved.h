/* Addresses that the public internet does not have (reserved.def). */
#pragma once

#include <stddef.h>

#include "base/address.h"
#include "model/machine.h"

const aq_net_range *aq_reserved(size_t *count);
/* What a machine reaches of them all the same: its own address, its gateway, its resolver, and the
 * metadata service that clouds have. At most AQ_REACHABLE. */
enum { AQ_REACHABLE = 4 };
size_t aq_reserved_though(const aq_machine *m, aq_net_range ret[static AQ_REACHABLE]);
/* Can this machine not reach that address? */
bool aq_reserved_from(const aq_machine *m, const aq_net_range *address);
