/* The digest of everything in tables that can change a finding. The tables are read when the
 * program is built (tools/tables-digest): rules, kinds, types, capabilities, limits, and the data
 * files of the clean room. Code is named by the engine: its version, and a digest of the sources,
 * so that two builds that may judge otherwise never bear one name, and two of the same always do.
 */
#include "base/err.h"
#include "cleanroom/report.h"
#include "tables_digest.h"

aq_digest aq_rules_digest(void)
{
    aq_digest d;

    if (aq_digest_parse(AQ_TABLES_DIGEST, &d) < 0)
        aq_panic("rules digest: the build left no digest of the tables");
    return d;
}

const char *aq_engine(void)
{
    return AQ_VERSION "+" AQ_SOURCES_DIGEST;
}

size_t aq_rules_count(void)
{
    return AQ_RULE_COUNT;
}
