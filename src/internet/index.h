/* Package indexes, as answers of the private internet (`do NAME` in answers.pack). They are known
 * by the shape of what is asked, on whatever host: those of Python, Node, Rust and Go. False: not
 * there. */
#pragma once

#include "internet/internal.h"

bool aq_index_project(aq_ask *q, aq_reply *r);  /* …/simple/NAME/ */
bool aq_index_json(aq_ask *q, aq_reply *r);     /* …/pypi/NAME[/VERSION]/json */
bool aq_index_file(aq_ask *q, aq_reply *r);     /* …/NAME-VERSION-….whl */
bool aq_package_short(aq_ask *q, aq_reply *r);  /* /NAME, for an installer */
bool aq_package_whole(aq_ask *q, aq_reply *r);  /* /NAME, for everybody */
bool aq_package_file(aq_ask *q, aq_reply *r);   /* /NAME/-/BASE-VERSION.tgz */
bool aq_crate_versions(aq_ask *q, aq_reply *r); /* /se/rd/serde */
bool aq_crate_about(aq_ask *q, aq_reply *r);    /* …/crates/NAME */
bool aq_crate_file(aq_ask *q, aq_reply *r);     /* …/crates/NAME/VERSION/download */
bool aq_module_answer(aq_ask *q, aq_reply *r);  /* MODULE/@v/…, MODULE/@latest */
