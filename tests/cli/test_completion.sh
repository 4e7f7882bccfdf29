#!/bin/bash
# SPDX-License-Identifier: MIT
# Completion for bash and zsh, compared with each verb's own help: every verb, every option, and the values of each
# option. Also: each verb's manual page has the options of its help and no others.
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/lib.sh"
. "$source_dir/completion/clrsnap.bash"
PATH=$(dirname "$CLRSNAP"):$PATH

# complete_words WORDS...: what bash offers for the last word, one candidate per line.
complete_words() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _clrsnap clrsnap
  printf '%s\n' "${COMPREPLY[@]}" | sort
}
# offers WORDS...: bash offers exactly the candidates on standard input.
offers() { complete_words "$@" > offered; same offered || fail "that was: $*"; }
# among CANDIDATE WORDS...: bash offers the candidate, perhaps among others.
among() {
  local candidate=$1
  shift
  complete_words "$@" | grep -qxF -- "$candidate" || fail "'$candidate' is not offered for: $*"
}

verbs=$("$CLRSNAP" help | sed -n 's/^  \([a-z-]*\)  *.*/\1/p')
[ "$(wc -w <<< "$verbs")" -ge 6 ] || fail "the help lists no verbs: $verbs"
{ tr ' ' '\n' <<< "$verbs"; printf '%s\n' --help --version; } | sort | offers clrsnap ""
tr ' ' '\n' <<< "$verbs" | sort | offers clrsnap help ""
for verb in $verbs; do
  case $verb in help | version) continue ;; esac
  "$CLRSNAP" $verb --help > help
  sed -En 's/^ {2}(-[A-Za-z]), (--[a-z-]+).*/\1\n\2/p; s/^ {6}(--[a-z-]+).*/\1/p' help | sort > options
  [ "$(wc -l < options)" -ge 3 ] || fail "$verb has no options: $(cat options)"
  page=$MAN/clrsnap-$verb.1
  # In the manual page, an option follows .TP, in bold.
  awk '/^\.TP/ { getline; print }' "$page" | grep -E '^\.B[IR]? \\-' | grep -oE '\\-[A-Za-z]\b|\\-\\-[a-z\\-]+' |
    tr -d '\\' | sort -u > in_page
  cmp -s options in_page || fail "$verb: the help and the manual page differ: $(diff options in_page)"
  offers clrsnap $verb - < options
  # The completion knows the placeholder of each option's value. A new placeholder has to be added there.
  sed -En 's/^ {2}(-[A-Za-z], | {4})--[a-z-]+ ([^ ]+).*/\2/p' help | sort -u > values
  while read -r value; do
    case $value in
      *'|'*) ;;
      MODE* | EVENT* | FORMAT | PID | OUT | FILE | PLACE) ;;
      PERCENT | BYTES | SECONDS | HZ | N | MIB | TEXT | URL | TIME | LINE | CONDITION | NAME | GUID | ROUTE | STATUS | 'ID[:SPAN]') ;; # nothing to offer
      *) fail "$verb: completion/clrsnap.bash and _clrsnap do not know what to offer for '$value'" ;;
    esac
  done < values
done

# Each mode and event of the help is in the manual page.
"$CLRSNAP" help record | awk '/^(Modes|Events)/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }' > words
[ "$(wc -l < words)" -ge 12 ] || fail "the help has no tables of modes and events: $(cat words)"
tr -d '\\' < "$MAN/clrsnap-record.1" > page
while read -r word; do
  grep -qw -- "$word" page || fail "the manual page of record does not name $word"
done < words

# Values and operands.
"$CLRSNAP" record --mode no true 2>&1 | sed "s/.*takes//; s/one or more of//; s/ with commas.*//; s/ not '.*//" |
  grep -oE '[a-z]+' | grep -vx or | sort > modes
[ "$(wc -l < modes)" -ge 2 ] || fail "no modes found in: $("$CLRSNAP" record --mode no true 2>&1)"
offers clrsnap record --mode "" < modes
if [ "$(wc -l < modes)" -gt 2 ]; then
  printf '%s\n' cpu,alloc cpu,async | offers clrsnap record --mode cpu,a
  complete_words clrsnap record --mode cpu, | grep -qx cpu,cpu && fail "a mode is offered twice"
fi
printf '%s\n' wall | offers clrsnap top --threads --mode w
printf '%s\n' wall | offers clrsnap top --mode = w
printf '%s\n' name self total | offers clrsnap top --sort ""
among speedscope clrsnap report --format s
# Events are those that a wrong one is refused with.
"$CLRSNAP" record --event no true 2>&1 | sed "s/.*one of//; s/, not 'no'.*//" | tr -d ' ' | tr ',' '\n' | sort > events
[ "$(wc -l < events)" -ge 5 ] || fail "no events found in: $("$CLRSNAP" record --event no true 2>&1)"
offers clrsnap record --event "" < events
printf '%s\n' collapsed html json md text | offers clrsnap diff --format ""
"$CLRSNAP" record --engine no true 2>&1 | grep -oE "'[a-z]+'" | tr -d "'" | grep -vx no | sort > engines
offers clrsnap record --engine "" < engines
touch old.clrsnap old.html
mkdir folder
printf '%s\n' folder old.clrsnap | offers clrsnap report ""
for suffix in html clrsnap pb.gz speedscope.json; do
  among new.$suffix clrsnap record -o new
  among folder/new.$suffix clrsnap report -F 9 --output folder/new.
done
among old.html clrsnap report -o old
among not-here.html clrsnap record -d 9 -o not-here.h
among bash clrsnap record -d 9 -- bas
among bash clrsnap top bas
among old.html clrsnap record bash old.h
# Processes are those that clrsnap ps lists.
clrsnap() {
  if [ "$1" != ps ]; then "$CLRSNAP" "$@"; else printf '%s\n' "    PID  RUNTIME" "   4711  10.0.12" "    (it does not answer)"; fi
}
echo 4711 | offers clrsnap stack ""
echo 4711 | offers clrsnap record -p ""
among 4711 clrsnap top ""
unset -f clrsnap

# zsh, on a terminal of its own.
if have zsh && have python3; then
  for verb in $verbs; do
    case $verb in help | version) continue ;; esac
    "$CLRSNAP" $verb --help | sed -En 's/^ {2}(-[A-Za-z], | {4})(--[a-z-]+).*/\2/p' | sort -u > "$verb.options"
  done
  timeout 300 python3 "$source_dir/tests/cli/completion_zsh.py" "$source_dir/completion" $verbs || fail "zsh"
else
  echo "no zsh here: its part was left out"
fi
done_testing
