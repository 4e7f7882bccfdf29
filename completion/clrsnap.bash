# SPDX-License-Identifier: MIT
# bash completion for clrsnap. The verbs, their options and the options' values are read from the
# help of the installed command when a key is pressed.
# tests/cli/test_completion.sh checks it against every verb's help.

# _clrsnap_help COMMAND VERB: a line for each thing in the verb's help, with tabs between fields:
# "option LONG SHORT VALUE", "format NAME SUFFIX", "mode NAME", "event NAME",
# "operand WORD".
_clrsnap_help() {
  "$1" "$2" --help 2> /dev/null | awk '
    /^  -[A-Za-z], --[a-z]/ || /^      --[a-z]/ {
      sub(/^ +/, "")
      sub(/  +.*/, "")
      short = ""
      if ($0 ~ /^-[A-Za-z], /) { short = substr($0, 1, 2); $0 = substr($0, 5) }
      print "option\t" $1 "\t" short "\t" $2
      next
    }
    /^(usage:|      ) clrsnap / {
      sub(/.*\[options\]/, "")
      gsub(/[][]/, "")
      for (i = 1; i <= NF; i++) print "operand\t" $i
    }
    /^(Modes|Events|Formats)/ { table = tolower(substr($1, 1, 1)) substr($1, 2); sub(/s[,:]?$/, "", table); next }
    /^$/ { table = "" }
    table != "" { print table "\t" $1 "\t" $2 }'
}

_clrsnap_verbs() { "$1" help 2> /dev/null | awk '/^  [a-z]/ { print $1 }'; }
_clrsnap_pids() { "$1" ps 2> /dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }'; }

_clrsnap_reply() { mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen "$@" -- "$cur"); }
_clrsnap_files() {
  compopt -o filenames 2> /dev/null
  _clrsnap_reply -f
}

# A name for an output: existing files, and the typed stem with each format's suffix.
_clrsnap_outputs() {
  local folder= base=$cur suffix
  case $cur in */*) folder=${cur%/*}/ base=${cur##*/} ;; esac
  base=${base%%.*}
  _clrsnap_files
  [ -n "$base" ] || return
  while read -r _ _ suffix; do
    _clrsnap_reply -W "$folder$base$suffix"
  done < <(grep '^format' <<< "$help")
}

# The next mode of a list with commas.
_clrsnap_modes() {
  local before= mode
  case $cur in *,*) before=${cur%,*}, ;; esac
  while read -r _ mode _; do
    case ,$before in *,$mode,*) ;; *) _clrsnap_reply -W "$before$mode" ;; esac
  done < <(grep '^mode' <<< "$help")
}

# What an option's value or an operand may be, by the word that the help uses for it.
_clrsnap_value() {
  case $1 in
    *'|'*) _clrsnap_reply -W "${1//|/ }" ;;
    MODE*) _clrsnap_modes ;;
    EVENT*) _clrsnap_reply -W "$(awk '/^event/ { print $2 }' <<< "$help")" ;;
    FORMAT) _clrsnap_reply -W "$(awk '/^format/ { print $2 }' <<< "$help")" ;;
    PID) _clrsnap_reply -W "$(_clrsnap_pids "$command")" ;;
    OUT) _clrsnap_outputs ;;
    RECORDING)
      compopt -o filenames 2> /dev/null
      _clrsnap_reply -f -X '!*.clrsnap'
      _clrsnap_reply -d
      ;;
    FILE) _clrsnap_files ;;
    PLACE)
      compopt -o filenames 2> /dev/null
      _clrsnap_reply -W 'microsoft debuginfod'
      _clrsnap_reply -d
      ;;
    program)
      case $cur in
        */*) _clrsnap_files ;;
        *) _clrsnap_reply -c ;;
      esac
      ;;
  esac
}

_clrsnap() {
  local command=$1 cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} help i word option= value
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    _clrsnap_reply -W "$(_clrsnap_verbs "$command") --help --version"
    return
  fi
  if [ "$verb" = help ]; then
    _clrsnap_reply -W "$(_clrsnap_verbs "$command")"
    return
  fi
  help=$(_clrsnap_help "$command" "$verb")
  [ -n "$help" ] || return
  # Which words are options, which their values, and where a program begins.
  for ((i = 2; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [ "$word" = = ]; then continue; fi
    if [ -n "$option" ]; then
      option=
    elif [ "$word" = -- ] || [[ $word != -* ]]; then
      grep -q "^operand$(printf '\t')program" <<< "$help" || continue
      [ "$word" != -- ] || i=$((i + 1))
      _clrsnap_program "$i"
      return
    else
      option=$(awk -F '\t' -v w="$word" '$1 == "option" && ($2 == w || $3 == w) && $4 != "" { print $2 }' <<< "$help")
    fi
  done
  [ "$cur" != = ] || cur=
  if [ -n "$option" ]; then
    value=$(awk -F '\t' -v w="$option" '$1 == "option" && $2 == w { print $4 }' <<< "$help")
    [ "$option" != --output ] || value=OUT
    _clrsnap_value "$value"
  elif [[ $cur == -* ]]; then
    _clrsnap_reply -W "$(awk -F '\t' '$1 == "option" { print $2; if ($3 != "") print $3 }' <<< "$help")"
  else
    while IFS=$'\t' read -r _ value; do
      case $value in FILE | A | B) value=RECORDING ;; esac
      _clrsnap_value "$value"
    done < <(grep '^operand' <<< "$help" | sort -u)
  fi
}

# _clrsnap_program I: word I begins a command line of its own.
_clrsnap_program() {
  if [ "$COMP_CWORD" = "$1" ]; then
    _clrsnap_value program
  elif declare -F _command_offset > /dev/null; then
    _command_offset "$1"
  else
    _clrsnap_files
  fi
}

complete -F _clrsnap clrsnap
