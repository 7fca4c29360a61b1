/* A small repository behind every address that git asks: one branch, one commit, two files, their
 * words drawn from the world's own key. Clones work; a push is taken, recorded and forgotten. */
#pragma once

#include "internet/internal.h"

bool aq_git_refs(aq_ask *q, aq_reply *r);
bool aq_git_upload(aq_ask *q, aq_reply *r);
bool aq_git_receive(aq_ask *q, aq_reply *r);
